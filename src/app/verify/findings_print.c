#include "app/verify/findings_print.h"

size_t tide_findings_print(FILE *to, const struct tide_findings *findings)
{
    size_t problems = 0;
    for (size_t i = 0; i < findings->count; i++) {
        const struct tide_finding *finding = &findings->items[i];
        problems += finding->is_problem;
        (void)fprintf(to, "%s: %.*s\n", finding->is_problem ? "problem" : "note",
                      TIDE_STR_ARG(finding->what));
        if (finding->remedy.len > 0) {
            (void)fprintf(to, "    %.*s\n", TIDE_STR_ARG(finding->remedy));
        }
    }
    return problems;
}

void tide_print_name(FILE *to, tide_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c < 0x20 || c == 0x7f) {
            (void)fprintf(to, "\\x%02x", c);
        } else {
            (void)fputc(c, to);
        }
    }
}
