/* What `tidemark status` says of a running pipeline, for people. */
#pragma once

#include "app/control/status_report.h"
#include "base/buf.h"

/** Appends lines: what it does, how far it is behind, its sinks, its snapshots. */
void tide_status_print(struct tide_buf *buf, const struct tide_status_report *report);
