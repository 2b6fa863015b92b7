/* Lines of a file of dead letters, which somebody may have edited. */
#include "base/limits.h"
#include "format/dead_letter.h"
#include "format/json_reader.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int position_is_json(tide_str json)
{
    struct tide_error err;
    return json.ptr == NULL || tide_json_check(json, TIDE_JSON_DEPTH_MAX, &err) == TIDE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_arena arena = {0};
    struct tide_error err;
    struct tide_dead_letter_read letter;
    struct tide_dead_letter_id id;
    char *line = malloc(size + 1); /* of its own, so that reading past its end is noticed */
    if (line == NULL) {
        return 0;
    }
    memcpy(line, data, size);
    bool has_id = tide_dead_letter_line_id(tide_str_of(line, size), &id);
    if (tide_dead_letter_decode(tide_str_of(line, size), &arena, &letter, &err) == TIDE_OK) {
        TIDE_ASSERT(letter.store.ptr != NULL && letter.reason.ptr != NULL);
        TIDE_ASSERT(letter.record.len <= size);
        TIDE_ASSERT(position_is_json(letter.position_json));
        TIDE_ASSERT(!has_id || (id.hi == letter.id.hi && id.lo == letter.id.lo));
        TIDE_ASSERT(tide_str_is_utf8(letter.store) && tide_str_is_utf8(letter.timestamp));
    } else {
        TIDE_ASSERT(err.status == TIDE_CORRUPT && err.message[0] != '\0');
    }
    tide_arena_done(&arena);
    free(line);
    return 0;
}
