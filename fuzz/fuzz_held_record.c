/* Decodes anything as a record of what is held; what is taken must be written as it was read. */
#include "sink/file/held_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_held_record record = {0};
    struct tide_error err;
    tide_str input = tide_str_of(data, size);
    if (tide_held_record_decode(input, &record, &err) == TIDE_OK) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf again = {0};
        tide_held_record_encode(&record, &record.progress, &again);
        TIDE_ASSERT(tide_str_equal(tide_buf_str(&again), input));
    }
    tide_held_record_done(&record);
    return 0;
}
