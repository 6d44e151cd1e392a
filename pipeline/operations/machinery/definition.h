// What the floor knows of one operation. Each operation is one file of this room that implements this: whoever
// adds one declares its options and define() in pipeline/operation.h and writes that file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "headrace/devices/base/option_visitor.h"
#include "headrace/pipeline/operation.h"

namespace headrace {

struct PixelPass;
class StepList;
class PairMixer;
class SampleStep;

// Where an operation stands in a plan.
struct OperationPlace {
  std::uint16_t number = 0;  // keys its random draws
  Field before;              // what it is done to
  bool cached = false;       // a cache keeps the result
};

// What an operation of the caller's own code is known by.
struct CodeName {
  std::string name = {};
  std::uint32_t version = 0;
};

// Immutable and thread-safe.
class OperationDefinition {
 public:
  virtual ~OperationDefinition() = default;

  // "pad_crop", as a plan's JSON calls it; null where the operation is not data (DataOperation).
  virtual const char* name() const noexcept { return nullptr; }
  // Shows the options to the visitor; the operation with what it leaves in them. Null where it is not data.
  virtual OperationPtr visit_options(OptionVisitor& /*visit*/) const { return nullptr; }
  // Of the caller's own code; no name: it is none.
  virtual CodeName code() const { return {}; }

  // "pad_crop(32, pad=4, zero)": name and parameters, for explain() and as fingerprint material.
  virtual std::string describe() const = 0;
  // The name of the field it changes.
  virtual const std::string& field() const noexcept;
  // The field after it; ConfigError where it cannot be applied to such a field, or where its options are wrong.
  virtual Field apply(const Field& before) const = 0;
  // Whether the result depends on random numbers.
  virtual bool is_random() const noexcept { return false; }
  // Of a random operation: the field that it would pass on as it is if it drew nothing, which may say more of its
  // size than `before` does. Nothing where it makes another field in any case.
  virtual std::optional<Field> undisturbed(const Field& before) const;
  // Whether the same record may give another result in another pass.
  virtual bool may_change() const noexcept { return is_random(); }

  // Adds it to a pass over the pixels of an image, which the host or a device does; false where it needs a pass of
  // its own or is none over pixels. What it leaves in `pass` then does not matter.
  virtual bool join(PixelPass& pass, const OperationPlace& place) const;
  // The host form: adds its step, or lets the last one do it. Unless it says otherwise it joins a pass over
  // pixels.
  virtual void compile(StepList& steps, const OperationPlace& place) const;

  // An operation on several fields of a sample, or one that adds fields, implements these three besides, and
  // field(), apply() and compile() have no meaning for it.
  virtual bool spans_fields() const noexcept { return false; }
  // Whether it reads or writes the field.
  virtual bool touches(const std::string& name) const { return name == field(); }
  // The fields of a sample after it, those there were in their places. ConfigError as apply().
  virtual Fields apply_to_sample(const Fields& before) const;
  // Null: it is in the chain of one field.
  virtual std::unique_ptr<const SampleStep> create_step(std::uint16_t number, const Fields& before) const;

  // Of an operation on the examples of a batch: what it does to two of them, whose fields are these. Null: it
  // works on one sample.
  virtual std::unique_ptr<const PairMixer> create_mixer(const Fields& fields) const;
  virtual bool is_batch_level() const noexcept { return false; }
};

// An operation whose options are data: its file says once which members they have, and plans are written and read
// by that. operation_table.cpp lists all of them.
template <typename Options>
class DataOperation : public OperationDefinition {
 public:
  explicit DataOperation(Options options) : options_(std::move(options)) {}

  const char* name() const noexcept override = 0;
  OperationPtr visit_options(OptionVisitor& visit) const final {
    Options options = options_;
    show(options, visit);
    return define(std::move(options));
  }

 protected:
  // Shows every member, as it is called.
  virtual void show(Options& options, OptionVisitor& visit) const = 0;

  const Options options_;
};

}  // namespace headrace
