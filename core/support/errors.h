// UsageError: what a user can mend.
#pragma once

#include <stdexcept>

namespace attest {

/// Something a user got wrong: one line that names the value, the rule and the remedy. Exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace attest
