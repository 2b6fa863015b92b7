#include "app/verify/verify_input.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "engine/dead_letter_files.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void tide_inputs_done(struct tide_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->items[i].path);
        free(inputs->items[i].error);
    }
    free(inputs->items);
    *inputs = (struct tide_inputs){0};
}

static struct tide_input *add_item(struct tide_inputs *inputs, const char *path)
{
    if (inputs->count == inputs->cap) {
        inputs->cap = inputs->cap == 0 ? 8 : inputs->cap * 2;
        inputs->items = tide_realloc(inputs->items, inputs->cap, sizeof(*inputs->items));
    }
    struct tide_input *input = &inputs->items[inputs->count++];
    *input = (struct tide_input){.path = tide_strndup(path, strlen(path))};
    return input;
}

static struct tide_input *add_found(struct tide_inputs *inputs, const char *path,
                                    const struct stat *info)
{
    struct tide_input *input = add_item(inputs, path);
    input->is_regular = S_ISREG(info->st_mode);
    if (input->is_regular) {
        input->mtime_us = (int64_t)info->st_mtim.tv_sec * 1000000 + info->st_mtim.tv_nsec / 1000;
    }
    return input;
}

static void add_lost(struct tide_inputs *inputs, const char *path, int error)
{
    struct tide_buf text = {0};
    tide_buf_printf(&text, "%s: could not be read: %s", path, strerror(error));
    (void)tide_buf_cstr(&text);
    add_item(inputs, path)->error = text.ptr;
}

/* What a state directory holds beside frames, should one lie among them. */
static bool is_of_state(tide_str name)
{
    return tide_str_starts_with(name, TIDE_STR("checkpoint_")) || tide_dead_letters_is_name(name);
}

static bool is_frame_file(const char *text)
{
    tide_str name = tide_str_from(text);
    if (text[0] == '.' || is_of_state(name)) {
        return false;
    }
    if (tide_str_ends_with(name, TIDE_STR(".zst"))) {
        name.len -= 4;
    }
    return tide_str_ends_with(name, TIDE_STR(".ndjson")) ||
           tide_str_ends_with(name, TIDE_STR(".json"));
}

static void add_link(struct tide_inputs *inputs, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        add_lost(inputs, path, errno);
    } else if (S_ISREG(info.st_mode)) {
        (void)add_found(inputs, path, &info);
    }
}

static void add_entry(struct tide_inputs *inputs, FTS *tree, FTSENT *entry)
{
    switch (entry->fts_info) {
    case FTS_D:
        if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
            (void)fts_set(tree, entry, FTS_SKIP);
        }
        return;
    case FTS_DNR:
    case FTS_ERR:
        add_lost(inputs, entry->fts_path, entry->fts_errno);
        return;
    case FTS_DP:
    case FTS_DC:
        return;
    default:
        break;
    }
    if (!is_frame_file(entry->fts_name)) {
        return;
    }
    if (entry->fts_info == FTS_F) {
        (void)add_found(inputs, entry->fts_path, entry->fts_statp);
    } else if (entry->fts_info == FTS_NS) {
        add_lost(inputs, entry->fts_path, entry->fts_errno);
    } else if (entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE) {
        add_link(inputs, entry->fts_path);
    } else {
        tide_log(TIDE_LOG_WARN, "%s: passed over: neither a file nor a directory", entry->fts_path);
    }
}

static int compare_names(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void add_directory(struct tide_inputs *inputs, const char *dir)
{
    char *path TIDE_CLEANUP(tide_free_ptr) = tide_strndup(dir, strlen(dir));
    char *const paths[] = {path, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_names);
    if (tree == NULL) {
        add_lost(inputs, dir, errno);
        return;
    }
    FTSENT *entry;
    errno = 0;
    while ((entry = fts_read(tree)) != NULL) {
        add_entry(inputs, tree, entry);
        errno = 0;
    }
    if (errno != 0) {
        add_lost(inputs, dir, errno);
    }
    (void)fts_close(tree);
}

void tide_inputs_add(struct tide_inputs *inputs, const char *path)
{
    struct stat info;
    bool is_standard_input = strcmp(path, "-") == 0;
    if ((is_standard_input ? fstat(STDIN_FILENO, &info) : stat(path, &info)) != 0) {
        add_lost(inputs, is_standard_input ? "standard input" : path, errno);
    } else if (!is_standard_input && S_ISDIR(info.st_mode)) {
        add_directory(inputs, path);
    } else {
        /* standard input stands where the one who opened it left it: it is read once */
        struct tide_input *input = add_found(inputs, path, &info);
        input->is_regular = input->is_regular && !is_standard_input;
    }
}
