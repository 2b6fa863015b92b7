/* Private to this folder: the tables of an archive, made and looked for. */
#pragma once

#include "base/status.h"

struct tide_archive;

/** Sets the pragmas of every connection that writes. */
tide_status tide_archive_set_up_writing(struct tide_archive *archive, int cache_kib,
                                        struct tide_error *err);

/** Makes the tables and the stamp in an empty database. */
tide_status tide_archive_schema_create(struct tide_archive *archive, struct tide_error *err);

/** Notes which optional columns there are. TIDE_CORRUPT when a table or needed column is not. */
tide_status tide_archive_schema_probe(struct tide_archive *archive, struct tide_error *err);

/** Adds optional columns that an older program left out. */
tide_status tide_archive_schema_complete(struct tide_archive *archive, struct tide_error *err);
