// Small numbers for threads: for what each thread keeps for itself among many.
#pragma once

#include <cstddef>

namespace headrace {

// The calling thread's: the lowest that no living thread had when it first asked. It passes to another thread when
// this one has ended, which then sees all that this one wrote.
std::size_t thread_number() noexcept;

}  // namespace headrace
