// Options that are changed by what they show to visitors, and whether they show all they have.
#pragma once

#include <type_traits>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {

// Makes each option another than it was, and counts them.
class ChangeAll final : public OptionVisitor {
 public:
  explicit ChangeAll(std::uint32_t round) : round_(round) {}
  int count() const noexcept { return count_; }

 protected:
  void visit(const char* /*name*/, OptionPlace place) override {
    ++count_;
    std::visit([this](auto* value) { change(*value); }, place);
  }
  void visit_numbers(const char* /*name*/, std::span<float> values, Short /*form*/) override {
    ++count_;
    for (float& value : values) change(value);
  }
  void visit_choice(const char* /*name*/, std::size_t& number, std::span<const char* const> choices) override {
    ++count_;
    number = (number + 1 + round_) % choices.size();
  }
  void visit_list(const char* /*name*/, const List& list) override {
    ++count_;
    list.resize(round_ % 3);
    for (std::size_t i = 0; i < round_ % 3; ++i) list.show(i, *this);
  }

 private:
  // Any bits that make a finite float.
  float any_float() {
    for (;;) {
      const std::uint32_t bits = random_.next_u32();
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      if (std::isfinite(value)) return value;
    }
  }

  void change(bool& value) { value = !value; }
  void change(float& value) { value = any_float(); }
  void change(double& value) { value = double{any_float()} / 3; }
  void change(std::string& value) { value += "é\"\n" + std::to_string(random_.next_u32()); }
  void change(std::filesystem::path& value) { value /= std::to_string(random_.next_u32()); }
  template <typename Number>
  requires std::is_integral_v<Number>
  void change(Number& value) {
    const std::uint64_t high = random_.next_u32();
    value = static_cast<Number>(high << 32 | random_.next_u32());
  }
  template <typename Item>
  void change(std::vector<Item>& values) {
    values.resize(1 + round_ % 4);
    for (Item& item : values) change(item);
  }

  std::uint32_t round_;
  int count_ = 0;
  Philox random_{{.seed = 17, .record = round_}};
};

// As many members as an options struct can be initialised with.
template <typename Options>
struct AnyMember {
  template <typename Value>
  requires(!std::is_same_v<std::remove_cvref_t<Value>, Options>) operator Value()
      const;  // NOLINT: it stands for a value of any type
};
template <typename Options, typename... Members>
constexpr int count_members() {
  if constexpr (requires { Options{Members{}..., AnyMember<Options>{}}; }) {
    return count_members<Options, Members..., AnyMember<Options>>();
  } else {
    return sizeof...(Members);
  }
}

struct TwoMembers {
  int one = 0;
  std::vector<float> two = {};
};
static_assert(count_members<TwoMembers>() == 2);

}  // namespace headrace::test
