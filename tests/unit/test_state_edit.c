#include "cmocka_prelude.h"

#include "app/adapters.h"
#include "app/state/state_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY(request, sink, table)                                                                 \
    "{\"request\":" request ",\"sinks\":[\"" sink "\"],\"table\":\"" table "\",\"store\":\"shop."  \
    "public." table "\",\"key\":[\"id\"],\"begun\":false,\"done\":false}"
#define SINK(name, seeded, detached)                                                               \
    "{\"name\":\"" name "\",\"seeded\":" seeded ",\"detached\":" detached ",\"failed\":[]}"

/* Four sinks: in order, never copied to, being copied to for the first time, detached. */
#define DOCUMENT(position, closed)                                                                        \
    "{\"reconciliation_pos\":" position ",\"tables\":[{\"name\":\"orders\",\"last_pk\":null,"             \
    "\"done\":false},{\"name\":\"users\",\"last_pk\":null,\"done\":false}],\"tidemark\":{"                \
    "\"version\":1,\"sequence\":41,\"pipeline\":\"p\",\"source\":\"s\",\"source_state\":{\"a\":"          \
    "1.50},\"incarnation\":0,\"creating\":false,\"closed\":" closed ",\"stores\":[{\"store\":"            \
    "\"shop.public.orders\",\"position\":" position                                                       \
    ",\"index\":3}],\"sinks\":[" SINK("all", "true", "false") "," SINK("new", "false", "false") "," SINK( \
        "first", "false",                                                                                 \
        "false") "," SINK("slow", "true",                                                                 \
                          "true") "],\"copies\":[" COPY("9", "all",                                       \
                                                        "orders") "," COPY("4", "first",                  \
                                                                           "orders") "," COPY("9",        \
                                                                                              "al"        \
                                                                                              "l",        \
                                                                                              "us"        \
                                                                                              "er"        \
                                                                                              "s") "],\"requests\":[{\"id\":4,\"sink\":\"first\",\"tables\":[\"shop.public.orders\"]}]}}"

struct fixture {
    char dir[64];
    struct tide_error err;
    struct tide_state_edit edit;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    *state = f;
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/tide_edit_XXXXXX");
    return mkdtemp(f->dir) == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    tide_state_edit_done(&f->edit);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", f->dir);
    free(f);
    return system(command);
}

static void put(struct fixture *f, const char *json)
{
    struct tide_state *state = NULL;
    assert_int_equal(tide_state_open(f->dir, &state, &f->err), TIDE_OK);
    assert_int_equal(
        tide_state_save(state, tide_str_from(json), TIDE_PHASE_CATCH_UP_PROGRESS, &f->err),
        TIDE_OK);
    tide_state_close(state);
}

static void open_edit(struct fixture *f)
{
    if (tide_state_edit_open(f->dir, &f->edit, &f->err) != TIDE_OK) {
        fail_msg("%s", f->err.message);
    }
}

/* Saves, and reads what is there then. */
static struct tide_checkpoint *save_and_read(struct fixture *f)
{
    assert_int_equal(tide_state_edit_save(&f->edit, &f->err), TIDE_OK);
    tide_state_edit_done(&f->edit);
    open_edit(f);
    return &f->edit.checkpoint;
}

static tide_status backfill(struct fixture *f, const char *sink, const tide_str *globs,
                            size_t glob_count, struct tide_control_answer *ret_answer)
{
    const struct tide_control_request request = {.command = TIDE_STR("backfill"),
                                                 .sink = tide_str_from(sink),
                                                 .tables = globs,
                                                 .table_count = glob_count};
    return tide_state_edit_backfill(&f->edit, &request, ret_answer, &f->err);
}

static void edit_keeps_all_else_whatever_the_source(void **state)
{
    static const char *const documents[] = {DOCUMENT("7", "false"), DOCUMENT("\"0/1A\"", "false")};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct tide_buf want = {0};
        struct tide_buf got = {0};
        put(f, documents[i]);
        open_edit(f);
        assert_string_equal(f->edit.kind->name, i == 0 ? "integer" : "lsn");
        assert_true(f->edit.checkpoint.stores[0].place.known);
        tide_checkpoint_encode(&f->edit.checkpoint, f->edit.kind, &want);
        struct tide_checkpoint *checkpoint = save_and_read(f);
        assert_int_equal(checkpoint->sequence, 42);
        checkpoint->sequence = 41;
        tide_checkpoint_encode(checkpoint, f->edit.kind, &got);
        assert_string_equal(tide_buf_cstr(&got), tide_buf_cstr(&want));
        assert_non_null(strstr(want.ptr, "\"index\":3"));
        tide_state_edit_done(&f->edit);
        assert_int_equal(teardown(state) + setup(state), 0);
        f = *state;
        tide_buf_done(&want);
        tide_buf_done(&got);
    }
}

static void backfill_gets_an_id_that_was_never_used(void **state)
{
    struct fixture *f = *state;
    struct tide_control_answer answer = {0};
    const tide_str globs[] = {TIDE_STR("us*"), TIDE_STR("*"), TIDE_STR("public.users")};
    put(f, DOCUMENT("7", "false"));
    open_edit(f);
    assert_int_equal(backfill(f, "all", globs, 3, &answer), TIDE_OK);
    assert_int_equal(answer.sink_count, 1);
    assert_int_equal(answer.table_count, 2);
    assert_true(tide_str_equal(answer.tables[0], TIDE_STR("shop.public.users")));
    const struct tide_checkpoint *checkpoint = save_and_read(f);
    assert_int_equal(checkpoint->request_count, 2);
    assert_int_equal(checkpoint->requests[0].id, 4);
    assert_int_equal(checkpoint->requests[1].id, 10);
    assert_true(tide_str_equal(checkpoint->requests[1].sink, TIDE_STR("all")));
    assert_int_equal(checkpoint->requests[1].table_count, 2);
}

/* A request for some tables would be taken for the first copy of a sink that has none. */
static void backfill_asks_nothing_of_sinks_that_get_everything(void **state)
{
    struct fixture *f = *state;
    struct tide_control_answer answer = {0};
    const tide_str glob = TIDE_STR("users");
    put(f, DOCUMENT("7", "false"));
    open_edit(f);
    assert_int_equal(backfill(f, "", &glob, 1, &answer), TIDE_OK);
    assert_int_equal(answer.sink_count, 4);
    const struct tide_checkpoint *checkpoint = save_and_read(f);
    assert_int_equal(checkpoint->request_count, 3);
    assert_true(tide_str_equal(checkpoint->requests[1].sink, TIDE_STR("all")));
    assert_true(tide_str_equal(checkpoint->requests[2].sink, TIDE_STR("first")));
    assert_int_not_equal(checkpoint->requests[1].id, checkpoint->requests[2].id);
}

/* Nothing of it has begun: one copy has all that both are about. */
static void backfill_asked_twice_is_one_until_it_begins(void **state)
{
    struct fixture *f = *state;
    struct tide_control_answer answer = {0};
    const tide_str globs[] = {TIDE_STR("users"), TIDE_STR("orders")};
    const tide_str turned[] = {TIDE_STR("orders"), TIDE_STR("users")};
    put(f, DOCUMENT("7", "false"));
    open_edit(f);
    assert_int_equal(backfill(f, "all", globs, 2, &answer), TIDE_OK);
    assert_int_equal(save_and_read(f)->request_count, 2);
    assert_int_equal(backfill(f, "all", turned, 2, &answer), TIDE_OK);
    assert_int_equal(answer.table_count, 2); /* they will be copied, as the user wants */
    assert_int_equal(save_and_read(f)->request_count, 2);
    assert_int_equal(backfill(f, "all", turned, 1, &answer), TIDE_OK); /* other tables */
    assert_int_equal(save_and_read(f)->request_count, 3);
    assert_int_equal(backfill(f, "first", turned, 1, &answer), TIDE_OK); /* as it waits already */
    assert_int_equal(save_and_read(f)->request_count, 3);
    struct tide_checkpoint_copy copies[4];
    memcpy(copies, f->edit.checkpoint.copies, 3 * sizeof(copies[0]));
    copies[3] = copies[0];
    copies[3].request_id = 10;
    copies[3].is_begun = true;
    f->edit.checkpoint.copies = copies;
    f->edit.checkpoint.copy_count = 4;
    assert_int_equal(backfill(f, "all", globs, 2, &answer), TIDE_OK);
    assert_int_equal(f->edit.checkpoint.request_count, 4);
}

static void backfill_of_nothing_names_what_there_is(void **state)
{
    struct fixture *f = *state;
    struct tide_control_answer answer = {0};
    const tide_str globs[] = {TIDE_STR("users"), TIDE_STR("user")};
    put(f, DOCUMENT("7", "false"));
    open_edit(f);
    assert_int_equal(backfill(f, "al", globs, 1, &answer), TIDE_INVALID);
    assert_non_null(strstr(f->err.message, "all, new, first, slow"));
    assert_int_equal(backfill(f, "all", globs, 2, &answer), TIDE_INVALID);
    assert_non_null(strstr(f->err.message, "\"user\""));
    assert_non_null(strstr(f->err.message, "shop.public.orders, shop.public.users"));
    assert_int_equal(f->edit.checkpoint.request_count, 1);
    assert_int_equal(answer.table_count, 0);
}

static void pause_is_kept_of_that_sink_alone(void **state)
{
    struct fixture *f = *state;
    put(f, DOCUMENT("7", "false"));
    open_edit(f);
    assert_int_equal(tide_state_edit_pause(&f->edit, TIDE_STR("nowhere"), true, &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_state_edit_pause(&f->edit, TIDE_STR("first"), true, &f->err), TIDE_OK);
    const struct tide_checkpoint *checkpoint = save_and_read(f);
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        assert_int_equal(checkpoint->sinks[i].is_paused, i == 2);
    }
    assert_int_equal(tide_state_edit_pause(&f->edit, TIDE_STR("first"), false, &f->err), TIDE_OK);
    assert_false(save_and_read(f)->sinks[2].is_paused);
}

static void nothing_to_change_is_invalid(void **state)
{
    struct fixture *f = *state;
    struct tide_state_edit other;
    char missing[80];
    assert_int_equal(tide_state_edit_open(f->dir, &other, &f->err), TIDE_INVALID);
    (void)snprintf(missing, sizeof(missing), "%s/missing", f->dir);
    assert_int_equal(tide_state_edit_open(missing, &other, &f->err), TIDE_INVALID);
    assert_int_not_equal(access(missing, F_OK), 0); /* it was not made */
    put(f, DOCUMENT("7", "false"));
    open_edit(f);
    assert_int_equal(tide_state_edit_open(f->dir, &other, &f->err), TIDE_INVALID); /* in use */
    assert_non_null(strstr(f->err.message, "process"));
    tide_state_edit_done(&f->edit);
    assert_int_equal(teardown(state) + setup(state), 0);
    f = *state;
    put(f, DOCUMENT("7", "true"));
    assert_int_equal(tide_state_edit_open(f->dir, &other, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.message, "starts anew"));
    assert_int_equal(teardown(state) + setup(state), 0);
    f = *state;
    put(f, "{\"reconciliation_pos\":null,\"tables\":[]}");
    assert_int_equal(tide_state_edit_open(f->dir, &other, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.message, "another program"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(edit_keeps_all_else_whatever_the_source, setup, teardown),
        cmocka_unit_test_setup_teardown(backfill_gets_an_id_that_was_never_used, setup, teardown),
        cmocka_unit_test_setup_teardown(backfill_asks_nothing_of_sinks_that_get_everything, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(backfill_asked_twice_is_one_until_it_begins, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(backfill_of_nothing_names_what_there_is, setup, teardown),
        cmocka_unit_test_setup_teardown(pause_is_kept_of_that_sink_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_to_change_is_invalid, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
