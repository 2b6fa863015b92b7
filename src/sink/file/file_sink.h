/*
 * The sink of plain files: `file:PATH` puts all frames into one file, `file:DIR/` those of each
 * table into one of its own. A line is a frame. What was acknowledged survives a power cut: files
 * are synced, and then a small record beside them says how far they are held; whatever lies behind
 * that is cut away when the sink is opened again. docs/sinks.md says when it refuses to start.
 *
 * After an error the sink is opened again with `is_resumed`, or what it holds would count as an
 * earlier copy's.
 */
#pragma once

#include "port/sink.h"

extern const struct tide_sink_ops tide_file_sink_ops;
