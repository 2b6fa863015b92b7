/*
 * Takes requests on the control socket, one line each, and gives back one line:
 *
 *     client ──line──▶ [ server's thread ] ──▶ take ──▶ [ main thread ]
 *     client ◀──line── [                 ] ◀── answer ◀──┘
 *
 * The thread only moves bytes; what a line means is the main thread's affair, which gets one
 * request at a time. Many clients are served at once, so that one that says nothing, or does not
 * read, holds up nobody: it is dropped after a while, or when its place is needed. A client gets
 * one answer and is closed.
 */
#pragma once

#include "base/status.h"
#include "base/str.h"
#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_control_server;

/**
 * Listens in the state directory, whose lock the caller holds, and starts the thread. `waker` is
 * woken when a request is there to be taken; it outlives the server. `patience_us` is how long a
 * client may take to send its line, and to read the answer; 0: 5 s. Errors: TIDE_IO.
 */
tide_status tide_control_server_start(const char *dir, struct tide_waker *waker,
                                      int64_t patience_us, struct tide_control_server **ret_server,
                                      struct tide_error *err);

/** Closes what is open, ends the thread and removes the socket. NULL is fine. */
void tide_control_server_stop(struct tide_control_server *server);

/* Main thread. */

/** The next request, without its line end; false: there is none. It is valid until it is answered.
 */
bool tide_control_server_take(struct tide_control_server *server, tide_str *ret_request);

/** Answers what was taken; `answer` is one line without its end. */
void tide_control_server_answer(struct tide_control_server *server, tide_str answer);

/** While the main thread is busy with something long: every request is answered with this at once.
 * An empty one: the main thread takes them again. None must be taken and not answered. */
void tide_control_server_excuse(struct tide_control_server *server, tide_str excuse);
