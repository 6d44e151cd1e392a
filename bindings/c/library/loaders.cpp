#include "headrace/pipeline/loader.h"

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

namespace headrace::c {
namespace {

ErrorPolicy policy_of(const hr_loader_options& how) {
  return {.on_error = enum_of(how.on_error, OnError::kSubstitute, "on_error"),
          .max_bad_share = how.max_bad_share,
          .quarantine = text_of(how.quarantine),
          .tally = share(how.tally)};
}

std::function<void()> waiting_call_of(const hr_loader_options& how, std::shared_ptr<void> user) {
  if (how.while_waiting == nullptr) return {};
  return [call = how.while_waiting, user = std::move(user)] {
    call_back("while_waiting", [&] { return call(user.get()); });
  };
}

LoaderOptions loader_options_of(const hr_loader_options& how, std::shared_ptr<void> user) {
  LoaderOptions options{
      .seed = how.seed,
      .epochs = how.epochs,
      .world = {.total = how.world_replicas, .first = how.world_first},
      .threads = how.threads,
      .reader_threads = how.reader_threads,
      .prefetch = how.prefetch,
      .in_order = how.in_order,
      .even_shares = enum_of(static_cast<std::int32_t>(how.even_shares), EvenShares::kDrop, "even_shares"),
      .stall_timeout_seconds = how.stall_timeout_seconds,
      .while_waiting = waiting_call_of(how, std::move(user)),
      .trace_spans = how.trace_spans,
      .convert = enum_of(how.convert, ConvertAt::kDevice, "convert"),
      .converted = enum_of(how.converted, DType::kF32, "converted"),
      .resident = enum_of(how.resident, Residency::kAlways, "resident"),
      .constraints = {.numa_node = how.numa_node, .core_type = how.core_type},
      .errors = policy_of(how),
      .memory_budget_bytes = how.memory_budget_bytes,
      .pinned_budget_bytes = how.pinned_budget_bytes,
      .cpu_budget = how.cpu_budget,
      .reader_limit = how.reader_limit,
      .resident_budget_bytes = how.resident_budget_bytes,
      .headspace = how.headspace};
  if (how.start != nullptr) options.start = LoaderState::parse(how.start);
  return options;
}

hr_loader* open_loader(const Dataset& plan, const std::shared_ptr<DeviceGroup>& devices,
                       const hr_loader_options& how, std::shared_ptr<void> user) {
  return new hr_loader{.devices = devices,
                       .streamed = plan.streamed(),
                       .loader = Loader(plan, *devices, loader_options_of(how, std::move(user)))};
}

}  // namespace
}  // namespace headrace::c

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_loader_open(const hr_dataset* dataset, const hr_devices* devices, const hr_loader_options* options,
                         hr_loader** loader) {
  return guarded(__func__, [&] {
    const auto how = HR_READ(hr_loader_options, HR_LOADER_OPTIONS_INIT, options);
    std::shared_ptr<void> user = headrace::c::share(how.user);
    hr_loader*& result = given(loader, "loader");
    const headrace::Dataset plan = given(dataset, "dataset").plan;
    result = headrace::c::open_loader(plan, given(devices, "devices").group, how, std::move(user));
  });
}

hr_status hr_loader_next(hr_loader* loader, int32_t replica, hr_batch** batch) {
  return guarded(__func__, [&] {
    hr_batch*& result = given(batch, "batch");
    hr_loader& from = given(loader, "loader");
    std::optional<headrace::Batch> next = from.loader.next(replica);
    result = next ? new hr_batch{headrace::SharedBatch(std::move(*next), from.devices)} : nullptr;
  });
}

hr_status hr_loader_stop(hr_loader* loader) {
  return guarded(__func__, [&] { given(loader, "loader").loader.stop(); });
}

void hr_loader_free(hr_loader* loader) { delete loader; }

hr_status hr_loader_describe(const hr_loader* loader, hr_loader_info* info) {
  return guarded(__func__, [&] {
    const hr_loader& of = given(loader, "loader");
    hr_loader_info answer = HR_LOADER_INFO_INIT;
    answer.local_rows = of.loader.local_rows();
    answer.steps_per_epoch = of.streamed ? HR_UNKNOWN : of.loader.steps_per_epoch();
    answer.field_count = of.loader.fields().size();
    answer.replicas = of.devices->size();
    answer.threads = of.loader.threads();
    answer.tuned = of.loader.tuned();
    headrace::c::write_struct(info, answer, "hr_loader_info", "HR_LOADER_INFO_INIT");
  });
}

hr_status hr_loader_field(const hr_loader* loader, size_t index, hr_field* field) {
  return guarded(__func__, [&] {
    const headrace::Fields& fields = given(loader, "loader").loader.fields();
    headrace::c::check_index(index, fields.size(), "field");
    given(field, "field") = headrace::c::describe(fields[index], fields[index].name.c_str());
  });
}

hr_status hr_loader_state(const hr_loader* loader, char** text) {
  return guarded(__func__, [&] {
    char*& result = given(text, "text");
    result = headrace::c::owned_text(given(loader, "loader").loader.state().serialize());
  });
}

hr_status hr_loader_trace(const hr_loader* loader, char** json) {
  return guarded(__func__, [&] {
    char*& result = given(json, "json");
    result = headrace::c::owned_text(given(loader, "loader").loader.trace_json());
  });
}
