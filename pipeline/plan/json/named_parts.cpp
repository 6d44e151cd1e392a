#include "headrace/pipeline/plan/json/named_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/pipeline/operations/machinery/definition.h"
#include "headrace/pipeline/plan/json/option_reader.h"

namespace headrace::plan_json {
namespace {

ConfigError not_data(const std::string& path, const std::string& what, const std::string& part) {
  return ConfigError(fmt::format("to_json(): {}: {} is code, which JSON cannot hold", path, what),
                     advice("give it to to_json() and from_json() in {}", part));
}

// Returns advice on the parts of a kind, which the reader calls `part`; empty if the reader can give none.
std::string what_is_in(const std::string& part, const std::vector<std::string>& there) {
  if (part.empty()) return "run the plan in the program that has the code";
  return part + " holds " + (there.empty() ? "nothing: give it there" : one_of(there));
}

std::vector<Operation> operations_of(const PlanParts& parts) {
  std::vector<Operation> all;
  for (const Operations& chain : parts.operations) all.insert(all.end(), chain.list().begin(), chain.list().end());
  return all;
}

// {"named": "f", "version": 2}
struct Reference {
  std::string name = {};
  std::uint32_t version = 1;
  bool any_version = false;  // none is said
};

Reference read_reference(const JsonPlace& object) {
  Reference reference;
  const PlanOptions no_paths;
  read_options(object, no_paths, [&](OptionVisitor& visit) {
    visit(kNamed, reference.name);
    visit("version", reference.version);
  });
  reference.any_version = !object.has("version");
  return reference;
}

nlohmann::ordered_json write_reference(const std::string& name, std::uint32_t version) {
  return {{kNamed, name}, {"version", version}};
}

// The part with the name and the version; `version_of` gives a part's version where the name is its own.
template <typename Part, typename VersionOf>
const Part& find_part(const JsonPlace& object, const std::vector<Part>& parts, const std::string& member,
                      const char* what, const VersionOf& version_of) {
  const Reference wanted = read_reference(object);
  std::vector<std::string> there;
  for (const Part& part : parts) {
    const auto [name, version] = version_of(part);
    if (name == wanted.name && (wanted.any_version || version == wanted.version)) return part;
    there.push_back(fmt::format("{} version {}", in_quotes(name), version));
  }
  object.refuse(fmt::format("{} {}{} is code, and is not among the parts", what, in_quotes(wanted.name),
                            wanted.any_version ? "" : fmt::format(", version {},", wanted.version)),
                what_is_in(member, there));
}

}  // namespace

nlohmann::ordered_json write_named(const SourcePtr& source, const PlanParts& parts, const std::string& path) {
  const SourceInfo& info = source->info();
  const auto reference = [&](const std::string& name) {
    return nlohmann::ordered_json{{kNamed, name}, {"fingerprint", to_hex(info.fingerprint)}};
  };
  for (const auto& [name, part] : parts.sources) {
    if (part == source) return reference(name);
  }
  for (const auto& [name, part] : parts.sources) {
    if (part != nullptr && part->info().fingerprint == info.fingerprint) return reference(name);
  }
  throw not_data(path, fmt::format("the source {}", info.name), named("PlanParts::sources"));
}

nlohmann::ordered_json write_named(const Operation& operation, const PlanParts& parts, const std::string& path) {
  const CodeName code = operation.definition().code();
  for (const Operation& part : operations_of(parts)) {
    if (part.definition().code().name.empty()) continue;
    if (describe(part) == describe(operation)) return write_reference(code.name, code.version);
  }
  throw not_data(path, describe(operation), named("PlanParts::operations"));
}

nlohmann::ordered_json write_named(const RecordFilter& filter, const PlanParts& parts, const std::string& path) {
  for (const RecordFilter& part : parts.filters) {
    const bool is_it =
        part.name == filter.name && part.version == filter.version && part.processed == filter.processed;
    if (is_it) return write_reference(filter.name, filter.version);
  }
  throw not_data(path, describe(filter), named("PlanParts::filters"));
}

SourcePtr named_source(const JsonPlace& object, const PlanParts& parts) {
  std::string name, fingerprint;
  const PlanOptions no_paths;
  read_options(object, no_paths, [&](OptionVisitor& visit) {
    visit(kNamed, name);
    visit("fingerprint", fingerprint);
  });
  const auto found = parts.sources.find(name);
  if (found == parts.sources.end() || found->second == nullptr) {
    std::vector<std::string> there;
    for (const auto& [one, part] : parts.sources) there.push_back(in_quotes(one));
    object.refuse(fmt::format("the source {} is not among the parts", in_quotes(name)),
                  what_is_in(named("PlanParts::sources"), there));
  }
  const std::string actual = to_hex(found->second->info().fingerprint);
  if (!fingerprint.empty() && fingerprint != actual) {
    object.refuse(fmt::format("the source {} has the fingerprint {}, and the plan was written for {}",
                              in_quotes(name), actual, in_quotes(fingerprint)),
                  "give the same data, or leave \"fingerprint\" out to run the plan on others");
  }
  return found->second;
}

Operation named_operation(const JsonPlace& object, const PlanParts& parts) {
  return find_part(object, operations_of(parts), named("PlanParts::operations"), "the operation",
                   [](const Operation& part) {
                     const CodeName code = part.definition().code();
                     return std::pair(code.name, code.version);
                   });
}

RecordFilter named_filter(const JsonPlace& object, const PlanParts& parts) {
  return find_part(object, parts.filters, named("PlanParts::filters"), "the filter",
                   [](const RecordFilter& part) { return std::pair(part.name, part.version); });
}

}  // namespace headrace::plan_json
