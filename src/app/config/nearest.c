#include "app/config/nearest.h"

#include <string.h>

enum {
    WORD_BYTES_MAX = 63
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits between two words of at most WORD_BYTES_MAX bytes, a swap of neighbours counting once. */
static size_t distance(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    size_t rows[3][WORD_BYTES_MAX + 1];
    for (size_t j = 0; j <= b_len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        const size_t *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = smaller(changed, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[a_len % 3][b_len];
}

static const char *only_beginning_with(const char *word, const char *const *known, size_t count)
{
    const char *found = NULL;
    size_t len = strlen(word);
    for (size_t i = 0; i < count && len >= 2; i++) {
        if (strncmp(known[i], word, len) == 0) {
            if (found != NULL) {
                return NULL;
            }
            found = known[i];
        }
    }
    return found;
}

const char *tide_nearest(const char *word, const char *const *known, size_t count)
{
    const char *best = NULL;
    size_t best_distance = WORD_BYTES_MAX;
    size_t len = strlen(word);
    for (size_t i = 0; i < count && len <= WORD_BYTES_MAX; i++) {
        size_t known_len = strlen(known[i]);
        if (known_len > WORD_BYTES_MAX) {
            continue;
        }
        size_t edits = distance(word, known[i]);
        if (edits < best_distance && edits * 3 <= (len > known_len ? len : known_len)) {
            best = known[i];
            best_distance = edits;
        }
    }
    return best != NULL ? best : only_beginning_with(word, known, count);
}
