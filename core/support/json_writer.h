// JSON text as the project writes it: one way to write a number, whatever the locale, so that equal values are equal
// bytes.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace attest {

/// Shortest decimal that reads back as the same double; "nan", "inf", "-inf" for the rest. No locale.
[[nodiscard]] std::string number_text(double value);

/// Builds one JSON value, member by member, without spaces. Commas and quotes are its own; balancing begin_ and end_ is
/// the caller's. Strings that are not UTF-8 have the offending bytes replaced by U+FFFD.
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  /// Finite: number_text. JSON has no other numbers: the strings "nan", "inf", "-inf".
  JsonWriter& value(double number);
  JsonWriter& value(bool truth);
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  JsonWriter& value(Integer number) {
    return raw(std::to_string(number));
  }
  /// Text that is a JSON value already.
  JsonWriter& raw(std::string_view json);
  /// key(name).value(value)
  template <class Value>
  JsonWriter& member(std::string_view name, const Value& member_value) {
    return key(name).value(member_value);
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void separate();
  std::string text_;
  bool fresh_ = true;  ///< nothing stands between the last bracket or key and here
};

}  // namespace attest
