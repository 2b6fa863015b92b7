/* Compiler attributes under one spelling. gcc 12 and clang 14 disagree on must-check enums. */
#pragma once

#if defined(__clang__)
#define TIDE_NODISCARD __attribute__((warn_unused_result))
#else
#define TIDE_NODISCARD [[nodiscard]]
#endif

#define TIDE_PRINTF(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))
#define TIDE_CLEANUP(fn)                   __attribute__((cleanup(fn)))
#define TIDE_NORETURN                      __attribute__((noreturn))
#define TIDE_LIKELY(x)                     __builtin_expect(!!(x), 1)
#define TIDE_UNLIKELY(x)                   __builtin_expect(!!(x), 0)
