#include "app/number_argument.h"

#include "base/str.h"

uint64_t tide_number_argument(const char *text, uint64_t min, uint64_t max, const char *option,
                              struct argp_state *state)
{
    uint64_t value = 0;
    if (!tide_str_to_u64(tide_str_from(text), &value) || value < min || value > max) {
        argp_error(state, "%s takes a number from %llu to %llu, not \"%s\"", option,
                   (unsigned long long)min, (unsigned long long)max, text);
    }
    return value;
}
