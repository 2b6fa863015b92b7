/* The sink `archive:PATH`: an archive of tables' rows and changes (docs/archive.md). */
#pragma once

#include "port/sink.h"

extern const struct tide_sink_ops tide_archive_sink_ops;
