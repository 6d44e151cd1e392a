// Operations on one sample between decode and batch, or on the examples of a batch together. They are plain values
// that describe; the planner compiles them. Random ones draw from Philox(seed, epoch, record, position in the
// plan).
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/devices/base/rng.h"
#include "headrace/devices/base/shape.h"
#include "headrace/pipeline/record.h"

namespace HEADRACE_API headrace {

// The fate of a box that lies outside the result.
enum class LostBoxes {
  kZero,  // four zeros in its place, so that other fields with a row for each box stay in line
  kDrop,  // the boxes after it move up; in a field of fixed length zeros follow them
};
constexpr std::array<const char*, 2> choice_names(LostBoxes /*of*/) { return {"zero", "drop"}; }
// Fields that an operation moves with the image: crops, mirrors and resizes by the same random numbers. A box is
// there if its right is above its left.
struct Along {
  // (H, W, C) of any type, as high and wide as the image. Each number of the result is one of the mask's: i of n
  // is that at floor(i m / n) of the window's m, or of a turned one the nearest. Padding is 0, or reflected.
  std::vector<std::string> masks = {};
  // (N, 4) or (4): left, top, right, bottom in pixels; f32 afterwards, clipped to the image; around a turned box.
  std::vector<std::string> boxes = {};
  LostBoxes lost = LostBoxes::kZero;
  // With kDrop: fields with a row for each box, whose rows are dropped with it. Where another field of the sample
  // could have a row for each box, they must be named; the boxes' own name says that no other field has. A field
  // `<name>_length` of these fields or the boxes, as padded_batch() adds it, becomes the number of rows that
  // remain.
  std::vector<std::string> with_boxes = {};

  bool empty() const noexcept { return masks.empty() && boxes.empty(); }
  void each_field(OptionVisitor& visit) {
    visit("masks", masks, "Fields as high and wide as the image that are moved with it.");
    visit("boxes", boxes, "Fields of boxes (left, top, right, bottom) that are moved with it.");
    visit("lost_boxes", lost, "What happens to a box that leaves the image.");
    visit("with_boxes", with_boxes, "With \"drop\": fields with a row for each box, dropped with it.");
  }
};

// A custom function on one field, which keeps its name: reads `in`, fills `out`; UserOperation does more. Must be
// pure: same input and random numbers, same output. `version` is part of every fingerprint: change it with the
// function.
struct UserMap {
  std::string name = {};
  std::uint32_t version = 1;
  std::string field = "image";
  Field output = {};  // dtype and shape of the result; the name is kept
  std::function<void(std::span<const std::byte> in, const Shape& in_shape, std::span<std::byte> out,
                     Philox& random)>
      function = {};
};

// One record as a custom operation sees it. Valid only during the call.
class UserSample {
 public:
  struct Position {
    std::uint64_t record = 0;  // its number in the source
    std::uint64_t pass = 0;    // zero-based pass number over the run; 0 if the operation
                               // does not say that it depends on the pass
  };
  struct Input {
    std::span<const std::byte> bytes;
    Shape shape;
  };

  UserSample(const Position& position, std::span<const Input> inputs, std::span<const Field> outputs,
             std::span<const std::span<std::byte>> room, Philox& random)
      : position_(position), inputs_(inputs), outputs_(outputs), room_(room), random_(&random) {}

  const Position& position() const noexcept { return position_; }
  // Returns the generator; its numbers depend on the record and pass, not on which thread runs it or when.
  Philox& random() noexcept { return *random_; }

  // Return the fields named in UserOperation::inputs, in that order; an encoded image's shape is its byte count.
  std::span<const std::byte> bytes(std::size_t input) const { return inputs_[input].bytes; }
  const Shape& shape(std::size_t input) const { return inputs_[input].shape; }
  template <typename Element>
  std::span<const Element> elements(std::size_t input) const {
    const std::span<const std::byte> all = bytes(input);
    return {reinterpret_cast<const Element*>(all.data()), all.size() / sizeof(Element)};
  }

  // Returns all of an output, uninitialised; it must be filled before the function returns.
  std::span<std::byte> room(std::size_t output) {
    written_ |= std::uint64_t{1} << output;
    return room_[output];
  }
  // Throws Error if the elements are fewer or more than the output has.
  void put(std::size_t output, std::span<const std::byte> elements);

  // Throws Error naming an output that was neither put nor given room for.
  void want_all_written() const;

 private:
  Position position_;
  std::span<const Input> inputs_;
  std::span<const Field> outputs_;
  std::span<const std::span<std::byte>> room_;
  Philox* random_;
  std::uint64_t written_ = 0;  // one bit per output
};

// A custom operation on any fields of a sample: it reads some, replaces some and adds others. It must be pure and
// thread-safe: its output depends on its inputs and, if `each_pass_anew` says so, on the pass and the random
// numbers. An exception counts as its record's fault, for LoaderOptions::errors to handle. `version` is part of
// every fingerprint: change it with the function.
struct UserOperation {
  std::string name = {};
  std::uint32_t version = 1;
  std::vector<std::string> inputs = {"image"};
  // Fields of fixed shape. One with the name of an existing field replaces it; any other is a new field.
  std::vector<Field> outputs = {};
  // True if it draws random numbers or looks at the pass: then it cannot stand before cache().
  bool each_pass_anew = false;
  std::function<void(UserSample&)> function = {};
};

// Returns where custom code may keep something for its later calls on this thread, such as another language's
// state of the thread; null on a thread that no engine runs. It is destroyed on this thread, at the latest when
// the engine's work there ends, and like custom code it may take its time.
std::shared_ptr<void>* kept_by_user_code() noexcept;

// The engine's implementation of an operation; private to the pipeline.
class OperationDefinition;
using OperationPtr = std::shared_ptr<const OperationDefinition>;

OperationPtr define(UserMap options);
OperationPtr define(UserOperation options);

// Options that define an operation.
template <typename Options>
concept DefinesOperation = requires(Options options) {
  { define(std::move(options)) } -> std::same_as<OperationPtr>;
};

// Immutable; copies share it.
class Operation {
 public:
  template <DefinesOperation Options>
  Operation(Options options) : definition_(define(std::move(options))) {}  // NOLINT: implicit by design
  explicit Operation(OperationPtr definition) : definition_(std::move(definition)) {}

  const OperationDefinition& definition() const noexcept { return *definition_; }

 private:
  OperationPtr definition_;
};

// A chain, applied left to right: pad_crop(32, 4) | flip() | normalize(mean, std).
class Operations {
 public:
  Operations(Operation operation) : list_{std::move(operation)} {}  // NOLINT: implicit by design

  const std::vector<Operation>& list() const noexcept { return list_; }

  // Returns the chain with these fields moved along by each operation that moves pixels: (random_resized_crop() |
  // flip() | normalize(mean, std)).along({.masks = {"seg"}}). Throws ConfigError if there is none.
  Operations along(const Along& fields) const;

  friend Operations operator|(Operations left, const Operations& right) {
    left.list_.insert(left.list_.end(), right.list_.begin(), right.list_.end());
    return left;
  }

 private:
  std::vector<Operation> list_;
};

Operations user_map(UserMap map);
Operations user_operation(UserOperation operation);
// An operation of the engine: its name in a plan's JSON and in Python, the sentence that explains it, and how many
// of its options, the first ones, a call in Python must give.
struct OperationKind {
  std::string name, doc;
  int required = 0;
};
std::vector<OperationKind> operation_kinds();
// Returns the operation that a plan's JSON calls `name`, with options as the visitor sets them. Throws ConfigError
// if there is no operation of this name.
Operations operation(std::string_view name, OptionVisitor& options);
// Returns it with options as in the plan's JSON, `{"size": 32}`; an empty text stands for all defaults. Throws
// ConfigError naming the place, as `pad_crop.size`.
Operations operation(std::string_view name, std::string_view options = {});

// Returns whether the result depends on random numbers: such an operation cannot stand before cache(). A user map
// counts as not random; one before cache() that draws a number nevertheless fails the run.
bool is_random(const Operation& operation);
// The field that holds the class, and that mixup() and cutmix() blend.
inline const std::string kLabelField = "label";

// Returns whether it works on the examples of a batch together: then it must stand after batch().
bool is_batch_level(const Operation& operation);
// Returns the name of the field it changes: for a batch-level operation the image (its labels follow); empty for a
// custom operation, which may change several.
const std::string& field_of(const Operation& operation);
// Returns "pad_crop(size=32, pad=4, padding=zero)": name and parameters, for explain() and as fingerprint
// material.
std::string describe(const Operation& operation);
// Returns the field after the operation. Throws ConfigError if it cannot be applied to such a field.
Field apply_to_field(const Operation& operation, const Field& field);

}  // namespace headrace
