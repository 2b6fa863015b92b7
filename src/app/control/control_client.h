/* Asking a running pipeline over its control socket. */
#pragma once

#include "app/control/control_message.h"

#include <stdint.h>

/**
 * Sends the request to the pipeline that runs with this state directory and waits for its answer,
 * which lives in `arena`.
 *
 * Errors:  TIDE_CLOSED none listens there; TIDE_INVALID the request is too long; TIDE_TIMEOUT;
 *          TIDE_IO the pipeline ended before it answered; TIDE_CORRUPT. What the pipeline says of
 *          the request itself is in the answer's status.
 */
tide_status tide_control_ask(const char *dir, const struct tide_control_request *request,
                             int64_t deadline_us, struct tide_arena *arena,
                             struct tide_control_answer *ret_answer, struct tide_error *err);
