/*
 * Lets tests in Python use the schema half of the SQLite source:
 *
 *     sqlite_ddl install DB PIPELINE [GLOB…]         prints the tables, tab-separated, one a line
 *     sqlite_ddl load DB PIPELINE POSITION [GLOB…]   the same, as after a restart
 *     sqlite_ddl watch DB PIPELINE [GLOB…]           then one look for each line of standard input:
 *                                                    the nonce to expect, or an empty line; the
 *                                                    answer "moved": the schema had, and is mended
 *     sqlite_ddl uninstall DB PIPELINE-OR-EMPTY      prints findings
 *     sqlite_ddl check DB [GLOB…]                    prints findings
 *
 * A line is "table number name rowid nullable exact identity key…" or "problem|remark text remedy";
 * names are in hexadecimal. A failure is printed as "failed status message"; the last line is "ok"
 * otherwise.
 */
#include "source/sqlite/sqlite_check.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_install.h"
#include "source/sqlite/sqlite_mend.h"
#include "source/sqlite/sqlite_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GLOBS_MAX 64

struct request {
    const char *verb;
    const char *path;
    tide_str pipeline;
    int64_t position;
    tide_str globs[GLOBS_MAX];
    size_t glob_count;
};

static void print_hex(tide_str text)
{
    putchar('\t');
    for (size_t i = 0; i < text.len; i++) {
        printf("%02x", (unsigned char)text.ptr[i]);
    }
}

static void print_tables(const struct tide_sqlite_tables *tables,
                         const struct tide_sqlite_installed *installed)
{
    printf("installed\t%s\t%s\t%" PRId64 "\t%" PRId64 "\n", installed->source_id, installed->nonce,
           installed->confirmed, installed->width);
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_sqlite_table *table = tables->items[i];
        printf("table\t%" PRId64, table->number);
        print_hex(table->name);
        print_hex(table->rowid_name);
        printf("\t%d\t%d\t%d", table->is_nullable, table->is_exact, (int)table->identity);
        for (size_t k = 0; k < table->key_count; k++) {
            print_hex(table->columns[table->key_columns[k]].name);
        }
        putchar('\n');
    }
}

static void print_findings(const struct tide_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        const struct tide_finding *item = &findings->items[i];
        printf("%s\t%.*s\t%.*s\n", item->is_problem ? "problem" : "remark",
               TIDE_STR_ARG(item->what), TIDE_STR_ARG(item->remedy));
    }
}

static void print_end(tide_status status, const struct tide_error *err)
{
    if (status == TIDE_OK) {
        puts("ok");
    } else {
        printf("failed\t%s\t%s\n", tide_status_name(status), err->message);
    }
    (void)fflush(stdout);
}

static struct tide_sqlite_choice choice_of(const struct request *request)
{
    return (struct tide_sqlite_choice){
        .pipeline = request->pipeline,
        .connection = TIDE_STR("test"),
        .globs = request->globs,
        .glob_count = request->glob_count,
    };
}

static void free_watch(struct tide_sqlite_watch **watch)
{
    tide_sqlite_watch_free(*watch);
}

static tide_status load(sqlite3 *db, const struct request *request, int64_t position,
                        struct tide_sqlite_installed *installed, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = db;
    TIDE_TRY(tide_sqlite_exec(open_db, "BEGIN", err));
    return tide_sqlite_installed_load(open_db, request->pipeline, position, installed, err);
}

static tide_status install(sqlite3 *db, const struct request *request, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    TIDE_CLEANUP(free_watch) struct tide_sqlite_watch *watch = NULL;
    struct tide_sqlite_choice choice = choice_of(request);
    struct tide_sqlite_installed installed;
    if (strcmp(request->verb, "load") == 0) {
        TIDE_TRY(load(db, request, request->position, &installed, err));
    } else {
        TIDE_TRY(tide_sqlite_install(db, &choice, NULL, &installed, err));
    }
    TIDE_TRY(tide_sqlite_watch_new(db, request->path, request->pipeline, &installed, &watch, err));
    TIDE_TRY(tide_sqlite_mend(db, &choice, watch, NULL, 0, &tables, NULL, err));
    print_tables(&tables, &installed);
    return TIDE_OK;
}

static tide_status look_once(sqlite3 *db, struct tide_sqlite_watch *watch, const char *line,
                             bool *ret_has_moved, struct tide_error *err)
{
    tide_str nonce = {line, strcspn(line, "\n")};
    TIDE_TRY(tide_sqlite_watch_file(watch, err));
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = db;
    TIDE_TRY(tide_sqlite_exec(open_db, "BEGIN", err));
    return tide_sqlite_watch_look(watch, &nonce, nonce.len > 0, ret_has_moved, err);
}

static tide_status look_and_mend(sqlite3 *db, const struct request *request,
                                 struct tide_sqlite_watch *watch, const char *line,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_tables_done) struct tide_sqlite_tables tables = {0};
    struct tide_sqlite_choice choice = choice_of(request);
    bool has_moved = false;
    TIDE_TRY(look_once(db, watch, line, &has_moved, err));
    if (!has_moved) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_sqlite_mend(db, &choice, watch, NULL, 0, &tables, NULL, err));
    printf("moved\t");
    return TIDE_OK;
}

static tide_status watch(sqlite3 *db, const struct request *request, struct tide_error *err)
{
    struct tide_sqlite_installed installed;
    TIDE_CLEANUP(free_watch) struct tide_sqlite_watch *watch = NULL;
    TIDE_TRY(load(db, request, 0, &installed, err));
    TIDE_TRY(tide_sqlite_watch_new(db, request->path, request->pipeline, &installed, &watch, err));
    TIDE_TRY(look_and_mend(db, request, watch, "", err));
    print_end(TIDE_OK, err);
    char line[128];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        print_end(look_and_mend(db, request, watch, line, err), err);
    }
    return TIDE_OK;
}

static tide_status check(sqlite3 *db, const struct request *request, struct tide_error *err)
{
    struct tide_findings findings = {0};
    struct tide_source_options options = {
        .place = tide_str_from(request->path),
        .connection = TIDE_STR("test"),
        .globs = request->globs,
        .glob_count = request->glob_count,
    };
    bool is_check = strcmp(request->verb, "check") == 0;
    tide_status status = is_check ? tide_sqlite_check(db, request->path, &options, &findings, err)
                                  : tide_sqlite_uninstall(db, request->pipeline, &findings, err);
    print_findings(&findings);
    tide_findings_done(&findings);
    return status;
}

static tide_status serve(const struct request *request, struct tide_error *err)
{
    bool is_reader = strcmp(request->verb, "check") == 0;
    TIDE_CLEANUP(tide_sqlite_db_close) sqlite3 *db = NULL;
    TIDE_TRY(tide_sqlite_db_open(
        request->path, is_reader ? TIDE_SQLITE_READ_ONLY : TIDE_SQLITE_READ_WRITE, 500, &db, err));
    if (strcmp(request->verb, "install") == 0 || strcmp(request->verb, "load") == 0) {
        return install(db, request, err);
    }
    return strcmp(request->verb, "watch") == 0 ? watch(db, request, err) : check(db, request, err);
}

int main(int argc, char **argv)
{
    struct request request = {0};
    struct tide_error err = {0};
    if (argc < 3) {
        return 2;
    }
    request.verb = argv[1];
    request.path = argv[2];
    int at = 3;
    if (strcmp(request.verb, "check") != 0 && at < argc) {
        request.pipeline = tide_str_from(argv[at++]);
    }
    if (strcmp(request.verb, "load") == 0 && at < argc) {
        request.position = strtoll(argv[at++], NULL, 10);
    }
    for (; at < argc && request.glob_count < GLOBS_MAX; at++) {
        request.globs[request.glob_count++] = tide_str_from(argv[at]);
    }
    print_end(serve(&request, &err), &err);
    return 0;
}
