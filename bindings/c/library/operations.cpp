// Chains of operations.
#include "headrace/pipeline/operations.h"

#include "headrace/bindings/c/library/handles.h"
#include "headrace/bindings/c/library/structs.h"

using headrace::c::given;
using headrace::c::guarded;

hr_status hr_operations_create(hr_operations** chain) {
  return guarded(__func__, [&] {
    hr_operations*& result = given(chain, "chain");
    result = new hr_operations;
  });
}

void hr_operations_free(hr_operations* chain) { delete chain; }

hr_status hr_operations_append(hr_operations* chain, const hr_operations* other) {
  return guarded(__func__, [&] {
    const std::vector<headrace::Operation> added = given(other, "other").list;
    std::vector<headrace::Operation>& list = given(chain, "chain").list;
    list.insert(list.end(), added.begin(), added.end());
  });
}

hr_status hr_operations_describe(const hr_operations* chain, char** text) {
  return guarded(__func__, [&] {
    char*& result = given(text, "text");
    std::string all;
    for (const headrace::Operation& operation : given(chain, "chain").list) {
      if (!all.empty()) all += " | ";
      all += headrace::describe(operation);
    }
    result = headrace::c::owned_text(all);
  });
}

hr_status hr_operations_add(hr_operations* chain, const char* name, const char* options) {
  return guarded(__func__, [&] {
    std::vector<headrace::Operation>& list = given(chain, "chain").list;
    const headrace::Operations made = headrace::operation(&given(name, "name"), headrace::c::text_of(options));
    list.insert(list.end(), made.list().begin(), made.list().end());
  });
}
