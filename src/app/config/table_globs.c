#include "app/config/table_globs.h"

void tide_table_globs_add(struct tide_table_globs *globs, char *list, struct argp_state *state)
{
    size_t before = globs->count;
    for (char *save = NULL, *glob = strtok_r(list, ",", &save); glob != NULL;
         glob = strtok_r(NULL, ",", &save)) {
        if (globs->count == TIDE_TABLE_GLOBS_MAX) {
            argp_error(state, "more than %d table globs", TIDE_TABLE_GLOBS_MAX);
        }
        globs->globs[globs->count++] = tide_str_from(glob);
    }
    if (globs->count == before) { /* else it would mean all of them */
        argp_error(state, "--tables names no table; leave it out for all, or give it a name or a "
                          "pattern, e.g. --tables 'log_*'");
    }
}
