/* One column as the server sends it, in a row of the stream or of a COPY: text or no text. */
#pragma once

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

enum tide_pg_field_kind {
    TIDE_PG_FIELD_NULL = 0,
    TIDE_PG_FIELD_UNCHANGED, /* not sent: a toasted value that the update did not touch */
    TIDE_PG_FIELD_TEXT,      /* the type's output text, in the client's encoding */
};

struct tide_pg_field {
    const char *ptr; /* borrowed; not NULL when the kind is TEXT */
    uint32_t len;
    uint8_t kind; /* enum tide_pg_field_kind */
};

static inline tide_str tide_pg_field_str(struct tide_pg_field field)
{
    return (tide_str){field.ptr, field.len};
}
