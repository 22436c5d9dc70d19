// An open file.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace attest {

/// A file descriptor that closes itself; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = other.release();
    }
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] explicit operator bool() const { return number_ >= 0; }
  /// The number, which the caller closes from now on.
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  /// Closes now, to learn of errors that only close reports. 0 or errno.
  int close() {
    if (number_ < 0) return 0;
    return ::close(release()) == 0 ? 0 : errno;
  }

 private:
  int number_ = -1;
};

}  // namespace attest
