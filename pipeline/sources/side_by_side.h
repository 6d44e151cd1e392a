// Reads many files on several threads, which wait for a disk or a network, and hands over what was found in order.
#pragma once

#include <cstddef>
#include <functional>

namespace headrace {

// Calls read(i) for each of `files` files on several threads, and take(i) on this one, in order; as many files are
// read ahead as there are threads. `remote`: more threads than processors, since they wait for answers. What
// read(i) throws is thrown in its turn, and then nothing else is read. While this thread waits its poll is called
// (remote::set_wait_poll()).
void read_side_by_side(std::size_t files, bool remote, const std::function<void(std::size_t)>& read,
                       const std::function<void(std::size_t)>& take);

}  // namespace headrace
