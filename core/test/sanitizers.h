// Under which sanitizer a test was compiled.
#pragma once

namespace attest {

#ifdef __has_feature
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
inline constexpr bool under_thread_sanitizer = __has_feature(thread_sanitizer);
#else  // g++ 12, with which nothing is sanitized
inline constexpr bool under_address_sanitizer = false, under_thread_sanitizer = false;
#endif

}  // namespace attest
