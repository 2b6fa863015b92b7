/*
 * The sink `-`: one frame a line to standard output. It remembers nothing: what a pipe's reader
 * keeps is not for us to know, so after a restart everything is sent again.
 */
#pragma once

#include "port/sink.h"

extern const struct tide_sink_ops tide_stdout_sink_ops;
