#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error "built with fast-math, these functions give other results: leave it out, and set -ffp-contract=off"
#endif

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "the compiler keeps more digits than a double has: on 32-bit x86 set -msse2 -mfpmath=sse"
#endif

/* Not every model uses every function. */
#if defined(__GNUC__)
#define PAL_FUNCTION static inline __attribute__((unused))
#define PAL_RARE static __attribute__((unused, cold, noinline))
#else
#define PAL_FUNCTION static inline
#define PAL_RARE static
#endif

#define PAL_DONE 0
typedef int pal_stop;

#define PAL_PASS(call) \
    do { \
        const pal_stop pal_why = (call); \
        if (pal_why != PAL_DONE) return pal_why; \
    } while (0)
#define PAL_TRY(at, call) \
    do { \
        const pal_stop pal_why = (call); \
        if (pal_why != PAL_DONE) { \
            w->line = (at); \
            return pal_why; \
        } \
    } while (0)

PAL_FUNCTION uint64_t pal_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

PAL_FUNCTION double pal_of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

PAL_FUNCTION pal_stop pal_finite(uint64_t bad) {
    return bad == 0 ? PAL_DONE : PAL_NOT_FINITE;
}

PAL_FUNCTION pal_stop pal_all_finite(const double *x, size_t count) {
    uint64_t bad = 0;
    for (size_t i = 0; i < count; i++) bad |= pal_bits(x[i] - x[i]);
    return pal_finite(bad);
}

PAL_FUNCTION pal_stop pal_holds(bool condition) {
    return condition ? PAL_DONE : PAL_FAILED;
}

PAL_FUNCTION pal_stop pal_never(void) {
    return PAL_FAILED;
}

PAL_FUNCTION pal_stop pal_within(int64_t at, int64_t length) {
    return 0 <= at && at < length ? PAL_DONE : PAL_OUTSIDE;
}

PAL_FUNCTION pal_stop pal_inside(int64_t at, int64_t length, int64_t *place) {
    *place = at;
    return pal_within(at, length);
}

PAL_FUNCTION pal_stop pal_take_steps(uint64_t *left, int64_t taken) {
    if (taken <= 0) return PAL_DONE;
    if (*left < (uint64_t)taken) return PAL_STEPS;
    *left -= (uint64_t)taken;
    return PAL_DONE;
}

PAL_FUNCTION double pal_real(int64_t n) {
    return (double)n;
}

PAL_FUNCTION pal_stop pal_truncate(double x, int64_t *whole) {
    const double limit = 9223372036854775808.0;
    if (!(-limit <= x && x < limit)) return PAL_OVERFLOW;
    *whole = (int64_t)x;
    return PAL_DONE;
}

PAL_FUNCTION pal_stop pal_added(int64_t a, int64_t b, int64_t *result) {
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return PAL_OVERFLOW;
    *result = a + b;
    return PAL_DONE;
}

PAL_FUNCTION pal_stop pal_subtracted(int64_t a, int64_t b, int64_t *result) {
    if (b > 0 ? a < INT64_MIN + b : a > INT64_MAX + b) return PAL_OVERFLOW;
    *result = a - b;
    return PAL_DONE;
}

PAL_FUNCTION pal_stop pal_multiplied(int64_t a, int64_t b, int64_t *result) {
    bool fits = true;
    if (a == -1 || b == -1)
        fits = a != INT64_MIN && b != INT64_MIN;
    else if (a != 0 && b != 0 && (a > 0) == (b > 0))
        fits = a > 0 ? a <= INT64_MAX / b : a >= INT64_MAX / b;
    else if (b != 0)
        fits = a < 0 ? a >= INT64_MIN / b : a <= INT64_MIN / b;
    if (!fits && a != 0) return PAL_OVERFLOW;
    *result = a * b;
    return PAL_DONE;
}

PAL_FUNCTION int64_t pal_quotient_by(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

PAL_FUNCTION int64_t pal_rest_by(int64_t a, int64_t b) {
    const int64_t left = a % b;
    return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

PAL_FUNCTION pal_stop pal_quotient(int64_t a, int64_t b, int64_t *result) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return PAL_OVERFLOW;
    *result = pal_quotient_by(a, b);
    return PAL_DONE;
}

PAL_FUNCTION pal_stop pal_rest(int64_t a, int64_t b, int64_t *result) {
    if (b == 0) return PAL_OVERFLOW;
    *result = b == -1 ? 0 : pal_rest_by(a, b);
    return PAL_DONE;
}

PAL_FUNCTION int64_t pal_least(int64_t a, int64_t b) {
    return b < a ? b : a;
}

PAL_FUNCTION int64_t pal_most(int64_t a, int64_t b) {
    return a < b ? b : a;
}

PAL_FUNCTION double pal_round32(double x) {
    return (double)(float)x;
}

PAL_FUNCTION double pal_signum(double x) {
    return x != x ? x : copysign(1.0, x);
}

PAL_FUNCTION double pal_square(double x) {
    return x * x;
}

PAL_FUNCTION double pal_cube(double x) {
    return x * x * x;
}

PAL_FUNCTION double pal_relu(double x) {
    return x < 0.0 ? 0.0 : x;
}

PAL_FUNCTION double pal_min(double x, double y) {
    return y < x || x != x ? y : x;
}

PAL_FUNCTION double pal_max(double x, double y) {
    return x < y || x != x ? y : x;
}

PAL_FUNCTION double pal_clamp(double x, double low, double high) {
    const double raised = x < low ? low : x;
    return high < raised ? high : raised;
}

PAL_FUNCTION double pal_select_nonzero(double x, double y, double z) {
    return x == 0.0 ? z : y;
}

/* The product in which a zero wins over infinity and NaN. */
PAL_FUNCTION double pal_strong_mul_by_choice(double x, double y) {
    const double product = x * y;
    return product != product && (x == 0.0 || y == 0.0) ? 0.0 : product;
}

/* The same where the plain product is NaN. */
PAL_RARE double pal_strong_mul_of_nan(double x, double y) {
    return x == 0.0 || y == 0.0 ? 0.0 : x * y;
}

/* The same with a branch, for numbers that depend on each other. */
PAL_FUNCTION double pal_strong_mul(double x, double y) {
    const double product = x * y;
    return product != product ? pal_strong_mul_of_nan(x, y) : product;
}

PAL_FUNCTION double pal_fract(double x) {
    return x - trunc(x);
}
