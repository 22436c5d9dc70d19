#include "reports/test/attack/mutation.h"

#include <algorithm>

namespace attest::attack {
namespace {

void change(std::string& bytes, Dice& dice) {
  if (bytes.empty()) {
    bytes += static_cast<char>(dice.below(256));
    return;
  }
  const std::size_t place = dice.below(bytes.size());
  const std::size_t length = std::min(bytes.size() - place, std::size_t{1} << dice.below(10));
  switch (dice.below(10)) {
    case 0:
    case 1:
    case 2:
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << dice.below(8)));
      return;
    case 3:
      bytes[place] = static_cast<char>(dice.below(256));
      return;
    case 4: {
      // A digit by a digit: what stays well-formed.
      const std::size_t digit = bytes.find_first_of("0123456789", place);
      if (digit != std::string::npos) bytes[digit] = static_cast<char>('0' + dice.below(10));
      return;
    }
    case 5:
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(place), length, '\0');
      return;
    case 6:
      bytes.erase(place, length);
      return;
    case 7:
      bytes.insert(dice.below(bytes.size()), bytes.substr(place, length));
      return;
    case 8: {
      const std::string piece = bytes.substr(place, length);
      bytes.erase(place, length);
      bytes.insert(dice.below(bytes.size() + 1), piece);
      return;
    }
    default:
      bytes.resize(place);
      return;
  }
}

}  // namespace

std::string mutated(std::string bytes, Dice& dice) {
  const std::string before = bytes;
  while (bytes == before) {
    for (std::size_t left = 1 + dice.below(3); left > 0; --left) change(bytes, dice);
  }
  return bytes;
}

}  // namespace attest::attack
