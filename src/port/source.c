#include "port/source.h"

#include <string.h>

void tide_findings_add(struct tide_findings *findings, bool is_problem, tide_str what,
                       tide_str remedy)
{
    if (findings->count == findings->cap) {
        size_t cap = findings->cap == 0 ? 8 : findings->cap * 2;
        struct tide_finding *items = tide_arena_alloc(&findings->arena, cap, sizeof(*items));
        if (findings->count > 0) {
            memcpy(items, findings->items, findings->count * sizeof(*items));
        }
        findings->items = items;
        findings->cap = cap;
    }
    findings->items[findings->count++] = (struct tide_finding){
        .is_problem = is_problem,
        .what = tide_arena_str(&findings->arena, what),
        .remedy = tide_arena_str(&findings->arena, remedy),
    };
}

void tide_findings_mark_left_out(struct tide_findings *findings)
{
    TIDE_ASSERT(findings->count > 0);
    findings->items[findings->count - 1].is_left_out = true;
}

void tide_findings_done(struct tide_findings *findings)
{
    tide_arena_done(&findings->arena);
    *findings = (struct tide_findings){0};
}
