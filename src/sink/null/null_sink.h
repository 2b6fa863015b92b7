/*
 * The sink that throws everything away: `null:`. It writes every frame as JSON into a buffer that
 * it reuses, and counts it, so that a copy to it measures everything but the target.
 */
#pragma once

#include "port/sink.h"

extern const struct tide_sink_ops tide_null_sink_ops;
