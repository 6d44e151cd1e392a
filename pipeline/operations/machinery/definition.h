// The interface of an operation. Each operation is one file in operations/ that implements this: to add one,
// declare its options and define() in pipeline/operations.h and write that file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

struct PixelPass;
class StepList;
class PairMixer;
class SampleStep;

// An operation's place in a plan.
struct OperationPlace {
  std::uint16_t number = 0;  // keys its random draws
  Field before;              // its input
  bool cached = false;       // a cache keeps the result
};

// The identity of a custom operation.
struct CodeName {
  std::string name = {};
  std::uint32_t version = 0;
};

// Immutable and thread-safe.
class OperationDefinition {
 public:
  virtual ~OperationDefinition() = default;

  // Returns "pad_crop", as in a plan's JSON; null if the operation is not data (DataOperation).
  virtual const char* name() const noexcept { return nullptr; }
  // Returns the sentence that explains it, and how many options, the first ones, a call in Python must give.
  virtual const char* doc() const noexcept { return ""; }
  virtual int required() const noexcept { return 0; }
  // Shows the options to the visitor; returns the operation with those it sets, or null if it is not data.
  virtual OperationPtr visit_options(OptionVisitor& /*visit*/) const { return nullptr; }
  // Returns the identity of a custom operation; without a name for any other.
  virtual CodeName code() const { return {}; }

  // Returns "pad_crop(size=32, pad=4, padding=zero)": for explain() and as fingerprint material.
  virtual std::string describe() const = 0;
  // Returns the name of the field it changes.
  virtual const std::string& field() const noexcept;
  // Returns the field after it. Throws ConfigError if the field does not fit, or if its options are wrong.
  virtual Field apply(const Field& before) const = 0;
  // Returns whether the result depends on random numbers.
  virtual bool is_random() const noexcept { return false; }
  // Returns, for a random operation, the field that it would pass on unchanged if it drew nothing, which may state
  // more of its size than `before` does; std::nullopt if it always makes another field.
  virtual std::optional<Field> undisturbed(const Field& before) const;
  // Returns whether the same record may give another result in another pass.
  virtual bool may_change() const noexcept { return is_random(); }

  // Adds it to a pass over the pixels of an image, run by the host or a device. Returns false if it needs its own
  // pass or does not work on pixels; `pass` is then unspecified.
  virtual bool join(PixelPass& pass, const OperationPlace& place) const;
  // Compiles for the host: adds its step, or extends the last one. Returns false, and changes nothing, if it joins
  // a pass over pixels.
  [[nodiscard]] virtual bool compile(StepList& /*steps*/, const OperationPlace& /*place*/) const { return false; }

  // An operation on several fields of a sample, or one that adds fields, also implements these functions; field(),
  // apply() and compile() have no meaning for it.
  virtual bool spans_fields() const noexcept { return false; }
  // Returns whether it reads or writes the field.
  virtual bool touches(const std::string& name) const { return name == field(); }
  // Returns the fields of a sample after it, existing ones in their places. Throws ConfigError as apply() does.
  virtual Fields apply_to_sample(const Fields& before) const;
  // Returns its step; null if it changes one field alone.
  virtual std::unique_ptr<const SampleStep> create_step(std::uint16_t number, const Fields& before) const;
  // Returns the operation with these fields moved along; null if it moves no pixels (MovingOperation).
  virtual OperationPtr with_along(const Along& /*fields*/) const { return nullptr; }

  // Returns the mixer of a batch-level operation for two examples with these fields; null if it works on one
  // sample.
  virtual std::unique_ptr<const PairMixer> create_mixer(const Fields& fields) const;
  virtual bool is_batch_level() const noexcept { return false; }
};

// An operation whose options are data: a name and fields, `Options::kName` and `Options::each_field()`.
// operation_table.cpp lists all such operations.
template <typename Options>
class DataOperation : public OperationDefinition {
 public:
  explicit DataOperation(Options options) : options_(std::move(options)) {}

  const char* name() const noexcept final { return Options::kName; }
  const char* doc() const noexcept final { return Options::kDoc; }
  int required() const noexcept final {
    if constexpr (requires { Options::kRequired; }) return Options::kRequired;
    return 0;
  }
  std::string describe() const final {
    Options options = options_;
    return std::string(Options::kName) + '(' + option_text([&](OptionVisitor& visit) {
             options.each_field(visit);
             if constexpr (requires { options.along; }) {
               if (!options.along.empty()) options.along.each_field(visit);
             }
           }) +
           ')';
  }
  OperationPtr visit_options(OptionVisitor& visit) const final {
    Options options = options_;
    options.each_field(visit);
    if constexpr (requires { options.along; }) options.along.each_field(visit);
    return define(std::move(options));
  }

 protected:
  const Options options_;
};

}  // namespace headrace
