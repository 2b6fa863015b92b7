/* What would keep a file sink from being opened, found out without changing anything. */
#pragma once

#include "port/sink.h"

/** As `check` in port/sink.h. */
tide_status tide_file_check(const struct tide_sink_options *options, struct tide_findings *findings,
                            struct tide_error *err);
