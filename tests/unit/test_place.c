#include "cmocka_prelude.h"

#include "app/adapters.h"
#include "app/place.h"

static const struct {
    const char *place;
    const char *shown;
    const char *database;
} cases[] = {
    {"sqlite:shop.db", "sqlite:shop.db", ""},
    {"file:a:b@c", "file:a:b@c", ""},
    {"sqlite:///srv/a:b@c.db", "sqlite:///srv/a:b@c.db", ""},
    {"", "", ""},
    {"postgres://", "postgres://", "postgres"},
    {"postgres://host/shop", "postgres://host/shop", "shop"},
    {"postgres://host:5432/shop", "postgres://host:5432/shop", "shop"},
    {"postgres://ann@host/shop", "postgres://ann@host/shop", "shop"},
    {"postgres://ann@host", "postgres://ann@host", "ann"},
    {"postgres://ann@host/", "postgres://ann@host/", "ann"},
    {"postgres://ann:pw@host/shop", "postgres://ann:***@host/shop", "shop"},
    {"postgresql://ann:p:w@host:1/shop.eu", "postgresql://ann:***@host:1/shop.eu", "shop.eu"},
    {"postgres://ann:p@w@host/shop", "postgres://ann:***@host/shop", "shop"},
    {"postgres://ann:p/w@host/shop", "postgres://ann:***@host/shop", "shop"},
    {"postgres://ann:@host/shop", "postgres://ann:***@host/shop", "shop"},
    {"postgres://:pw@host/shop", "postgres://:***@host/shop", "shop"},
    {"postgres://host:5432/a@b", "postgres://host:5432/a@b", "a@b"},
    {"postgres://h1:5432,h2:5433/shop", "postgres://h1:5432,h2:5433/shop", "shop"},
    {"postgres://host/shop?sslmode=require", "postgres://host/shop?sslmode=require", "shop"},
    {"postgres://host/shop?password=pw&a=b", "postgres://host/shop?password=***&a=b", "shop"},
    {"postgres://?user=ann&sslpassword=pw", "postgres://?user=ann&sslpassword=***", "postgres"},
    {"postgres:///?host=/run&dbname=shop", "postgres:///?host=/run&dbname=shop", "shop"},
    {"postgres://ann:pw@?host=/a@b", "postgres://ann:***@?host=/a@b", "ann"},
};

static void append_shown_masks_passwords_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
        tide_place_append_shown(&buf, tide_str_from(cases[i].place));
        assert_string_equal(tide_buf_cstr(&buf), cases[i].shown);
    }
}

static void url_database_is_path_then_query_then_user(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tide_str database = tide_place_url_database(tide_str_from(cases[i].place));
        assert_true(tide_str_equal(database, tide_str_from(cases[i].database)));
    }
}

static void connection_name_of_path_has_no_extension(void **state)
{
    (void)state;
    tide_str name = tide_connection_name(TIDE_STR("/srv/shop.old.db"));
    assert_true(tide_str_equal(name, TIDE_STR("shop.old")));
    name = tide_connection_name(TIDE_STR("postgres://ann:pw@host/shop.eu?a=/x"));
    assert_true(tide_str_equal(name, TIDE_STR("shop.eu")));
}

static void find_source_hands_on_a_path_or_a_whole_url(void **state)
{
    (void)state;
    const struct tide_source_ops *ops = NULL;
    tide_str rest;
    struct tide_error err;
    assert_int_equal(tide_find_source("sqlite:///srv/a.db", &ops, &rest, &err), TIDE_OK);
    assert_true(tide_str_equal(rest, TIDE_STR("///srv/a.db")));
    assert_int_equal(tide_find_source("postgres://host/shop", &ops, &rest, &err), TIDE_OK);
    assert_true(tide_str_equal(rest, TIDE_STR("postgres://host/shop")));
    assert_int_equal(tide_find_source("postgresql://host/shop", &ops, &rest, &err), TIDE_OK);
    assert_true(tide_str_equal(rest, TIDE_STR("postgresql://host/shop")));
}

static void find_source_unknown_scheme_does_not_show_the_password(void **state)
{
    (void)state;
    const struct tide_source_ops *ops = NULL;
    tide_str rest;
    struct tide_error err;
    assert_int_equal(tide_find_source("oracle://ann:pw@host/shop", &ops, &rest, &err),
                     TIDE_INVALID);
    assert_null(strstr(err.message, "pw"));
    assert_non_null(strstr(err.message, "postgres://"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_shown_masks_passwords_only),
        cmocka_unit_test(url_database_is_path_then_query_then_user),
        cmocka_unit_test(connection_name_of_path_has_no_extension),
        cmocka_unit_test(find_source_hands_on_a_path_or_a_whole_url),
        cmocka_unit_test(find_source_unknown_scheme_does_not_show_the_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
