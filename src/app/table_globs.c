#include "app/table_globs.h"

void tide_table_globs_add(struct tide_table_globs *globs, char *list, struct argp_state *state)
{
    for (char *save = NULL, *glob = strtok_r(list, ",", &save); glob != NULL;
         glob = strtok_r(NULL, ",", &save)) {
        if (globs->count == TIDE_TABLE_GLOBS_MAX) {
            argp_error(state, "more than %d table globs", TIDE_TABLE_GLOBS_MAX);
        }
        globs->globs[globs->count++] = tide_str_from(glob);
    }
}
