#include "model/change.h"

#include "base/status.h"

const char *tide_op_name(enum tide_op op)
{
    static const char *const names[] = {
        [TIDE_OP_INSERT] = "insert",
        [TIDE_OP_UPDATE] = "update",
        [TIDE_OP_DELETE] = "delete",
        [TIDE_OP_TRUNCATE] = "truncate",
    };
    TIDE_ASSERT((size_t)op < sizeof(names) / sizeof(names[0]));
    return names[op];
}
