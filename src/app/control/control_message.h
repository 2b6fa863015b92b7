/*
 * What is said on the control socket: one JSON object a line, there and back. Pure.
 *
 *     {"command":"status"}
 *     {"command":"backfill","sink":"all","tables":["orders","log_*"]}
 *     {"command":"pause","sink":"all"}   {"command":"resume","sink":"all"}
 *
 *     {"status":"ok","sinks":["all"],"tables":["shop.orders"],"report":{…}}
 *     {"status":"invalid","message":"there is no sink …"}
 *
 * Of a request, keys that are not known are refused: who sends one wants something. Of an answer
 * they are passed over. Those that say nothing are left out.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"

#include <stddef.h>

struct tide_control_request {
    tide_str command;
    tide_str sink; /* empty: every sink */
    const tide_str *tables;
    size_t table_count; /* 0: all tables */
};

struct tide_control_answer {
    tide_status status; /* TIDE_CLOSED: not now, but soon */
    tide_str message;   /* why not; with TIDE_OK a note, or empty */
    const tide_str *sinks;
    size_t sink_count;
    const tide_str *tables;
    size_t table_count;
    tide_str report; /* a JSON object as it came; empty: none */
};

/* Texts must be UTF-8. */
void tide_control_request_encode(const struct tide_control_request *request, struct tide_buf *buf);
void tide_control_answer_encode(const struct tide_control_answer *answer, struct tide_buf *buf);

/** What is read lives in `line` or in `arena`. Errors: TIDE_CORRUPT with the byte offset. */
tide_status tide_control_request_decode(tide_str line, struct tide_arena *arena,
                                        struct tide_control_request *ret_request,
                                        struct tide_error *err);
tide_status tide_control_answer_decode(tide_str line, struct tide_arena *arena,
                                       struct tide_control_answer *ret_answer,
                                       struct tide_error *err);
