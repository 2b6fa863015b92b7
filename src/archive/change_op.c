#include "archive/change_op.h"

static const tide_str snapshot_names[] = {
    [TIDE_ROW_SNAPSHOT] = {"row", 3}, [TIDE_ROW_STUB] = {"stub", 4},
    [TIDE_ROW_BEGIN] = {"begin", 5},  [TIDE_ROW_RESUME] = {"resume", 6},
    [TIDE_ROW_END] = {"end", 3},
};

tide_str tide_change_op_name(enum tide_change_row_kind kind, enum tide_op op)
{
    return kind == TIDE_ROW_CHANGE ? tide_str_from(tide_op_name(op)) : snapshot_names[kind];
}

bool tide_change_op_parse(tide_str name, enum tide_change_row_kind *ret_kind, enum tide_op *ret_op)
{
    for (int kind = TIDE_ROW_SNAPSHOT; kind <= TIDE_ROW_END; kind++) {
        if (tide_str_equal(name, snapshot_names[kind])) {
            *ret_kind = (enum tide_change_row_kind)kind;
            *ret_op = TIDE_OP_INSERT;
            return true;
        }
    }
    for (int op = TIDE_OP_INSERT; op <= TIDE_OP_TRUNCATE; op++) {
        if (tide_str_equal(name, tide_str_from(tide_op_name((enum tide_op)op)))) {
            *ret_kind = TIDE_ROW_CHANGE;
            *ret_op = (enum tide_op)op;
            return true;
        }
    }
    return false;
}
