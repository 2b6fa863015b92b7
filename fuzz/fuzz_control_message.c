/* What comes over a control socket: a request, an answer or a report, or corrupt, and printable. */
#include "app/control/control_message.h"
#include "app/control/status_print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is written, and read again as the same. */
static void check_request(tide_str line, struct tide_arena *arena)
{
    struct tide_buf first TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf second TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_control_request request = {0};
    struct tide_control_request again = {0};
    struct tide_error err;
    if (tide_control_request_decode(line, arena, &request, &err) != TIDE_OK) {
        return;
    }
    tide_control_request_encode(&request, &first);
    TIDE_ASSERT(memchr(first.ptr, '\n', first.len) == NULL);
    TIDE_ASSERT(tide_control_request_decode(tide_buf_str(&first), arena, &again, &err) == TIDE_OK);
    tide_control_request_encode(&again, &second);
    TIDE_ASSERT(tide_str_equal(tide_buf_str(&first), tide_buf_str(&second)));
}

static void check_answer(tide_str line, struct tide_arena *arena)
{
    struct tide_buf written TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_control_answer answer = {0};
    struct tide_control_answer again = {0};
    struct tide_error err;
    if (tide_control_answer_decode(line, arena, &answer, &err) != TIDE_OK) {
        return;
    }
    tide_control_answer_encode(&answer, &written);
    TIDE_ASSERT(tide_control_answer_decode(tide_buf_str(&written), arena, &again, &err) == TIDE_OK);
    TIDE_ASSERT(again.status == answer.status && again.table_count == answer.table_count);
}

static void check_report(tide_str json, struct tide_arena *arena)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_status_report report = {0};
    struct tide_error err;
    if (tide_status_report_read(json, arena, &report, &err) != TIDE_OK) {
        return;
    }
    (void)tide_status_report_is_fine(&report);
    tide_status_print(&text, &report);
    for (size_t i = 0; i < text.len; i++) {
        TIDE_ASSERT((unsigned char)text.ptr[i] >= 0x20 || text.ptr[i] == '\n');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    tide_str line = tide_str_of(data, size);
    check_request(line, &arena);
    check_answer(line, &arena);
    check_report(line, &arena);
    return 0;
}
