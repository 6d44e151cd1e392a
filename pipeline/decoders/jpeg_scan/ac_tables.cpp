#include "headrace/pipeline/decoders/jpeg_scan/ac_tables.h"

namespace headrace {
namespace {

using ReadStep = AcReadTable::Step;

constexpr std::uint64_t first_bits(std::uint32_t bits, int count) noexcept {
  return std::uint64_t{bits} << (64 - count);
}

// Returns the step of the first symbol alone.
ReadStep single_step(const HuffmanCode& code, std::uint64_t bits) noexcept {
  const AcSymbol symbol = AcSymbol::of(code.read_short(bits));
  const int used = symbol.length + symbol.size;
  if (symbol.length == 0 || used > AcReadTable::kLookup) return {};
  if (symbol.ends) return {.advance = AcPlace::kEnd, .bits = static_cast<std::uint8_t>(used)};
  const auto value = static_cast<std::int16_t>(extended(bits << symbol.length, symbol.size));
  const auto run = static_cast<std::uint8_t>(symbol.run);
  return {.first = value,
          .second = value,
          .first_at = run,
          .second_at = run,
          .advance = static_cast<std::uint8_t>(run + 1),
          .bits = static_cast<std::uint8_t>(used)};
}

// Returns `one`, followed by `next` if that is determined by what `one` leaves of the bits.
ReadStep both_steps(ReadStep one, const ReadStep& next) noexcept {
  if (one.bits == 0 || one.advance >= AcPlace::kEnd) return one;
  if (next.bits == 0 || one.bits + next.bits > AcReadTable::kLookup) return one;
  if (next.advance < AcPlace::kEnd) {
    one.second = next.first;
    one.second_at = static_cast<std::uint8_t>(one.advance + next.first_at);
  }
  one.advance = static_cast<std::uint8_t>(one.advance + next.advance);
  one.bits = static_cast<std::uint8_t>(one.bits + next.bits);
  return one;
}

}  // namespace

void AcReadTable::assign(const HuffmanCode& code) noexcept {
  if (made_from_ == code.definition()) return;
  made_from_ = code.definition();
  std::array<Step, 1 << kLookup> singles;
  for (std::uint32_t bits = 0; bits < singles.size(); ++bits) {
    singles[bits] = single_step(code, first_bits(bits, kLookup));
  }
  for (std::uint32_t bits = 0; bits < singles.size(); ++bits) {
    const Step& one = singles[bits];
    steps_[bits] = both_steps(one, singles[bits << one.bits & (singles.size() - 1)]);
  }
}

void AcSkipTable::assign(const HuffmanCode& code) noexcept {
  if (made_from_ == code.definition()) return;
  made_from_ = code.definition();
  for (std::uint32_t bits = 0; bits < steps_.size(); ++bits) steps_[bits] = step_of(code, bits);
}

AcSkipTable::Step AcSkipTable::step_of(const HuffmanCode& code, std::uint32_t bits) noexcept {
  Step step;
  int used = 0;
  unsigned advance = 0;
  for (std::uint64_t rest = first_bits(bits, kLookup); used < kLookup;) {
    const AcSymbol symbol = AcSymbol::of(code.read_short(rest));
    if (symbol.length == 0 || symbol.length > kLookup - used) break;
    advance += symbol.ends ? AcPlace::kEnd : static_cast<unsigned>(symbol.run + 1);
    if ((advance & (AcPlace::kEnd - 1)) > 63) break;  // more than a block has
    used += symbol.length + symbol.size;
    step = {.bits = static_cast<std::uint8_t>(used), .advance = static_cast<std::uint8_t>(advance)};
    if (symbol.ends) break;
    rest <<= symbol.length + symbol.size;
  }
  return step;
}

}  // namespace headrace
