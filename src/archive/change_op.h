/* What `_op` says: the change's operation, or what a row of a snapshot is. Pure. */
#pragma once

#include "archive/change_row.h"

/** "insert" … "truncate" of a change; "row", "stub", "begin", "resume", "end". Static. */
tide_str tide_change_op_name(enum tide_change_row_kind kind, enum tide_op op);

/** False when `name` is none of them. */
bool tide_change_op_parse(tide_str name, enum tide_change_row_kind *ret_kind, enum tide_op *ret_op);
