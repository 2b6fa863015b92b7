/* Decodes anything; what is taken must be written and read again as the same. */
#include "format/checkpoint.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(const struct tide_checkpoint *checkpoint, struct tide_arena *arena)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf first = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf second = {0};
    struct tide_checkpoint again = {0};
    struct tide_error err;
    tide_checkpoint_encode(checkpoint, &tide_position_integer, &first);
    tide_status status =
        tide_checkpoint_decode(tide_buf_str(&first), &tide_position_integer, arena, &again, &err);
    TIDE_ASSERT(status == TIDE_OK);
    tide_checkpoint_encode(&again, &tide_position_integer, &second);
    TIDE_ASSERT(tide_str_equal(tide_buf_str(&first), tide_buf_str(&second)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_checkpoint checkpoint = {0};
    struct tide_checkpoint_key key = {0};
    struct tide_error err;
    tide_str input = tide_str_of(data, size);
    tide_str json = {0};
    enum tide_checkpoint_phase phase;
    int64_t created_us = 0;
    if (tide_checkpoint_decode(input, &tide_position_integer, &arena, &checkpoint, &err) ==
        TIDE_OK) {
        same_again(&checkpoint, &arena);
    }
    if (tide_checkpoint_file_decode(input, &arena, &json, &phase, &created_us, &err) == TIDE_OK &&
        tide_checkpoint_decode(json, &tide_position_integer, &arena, &checkpoint, &err) ==
            TIDE_OK) {
        same_again(&checkpoint, &arena);
    }
    (void)!tide_checkpoint_key_decode(input, &arena, &key, &err);
    return 0;
}
