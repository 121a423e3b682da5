// Asking all threads to give back what allocators of libraries keep for them.
//
// Rule: such allocators keep memory for each thread, and only the thread itself can give it back. So it is
// asked for here, and done by each thread when it has ended what it was at.
#pragma once

namespace bireme {

// Any thread.
void ask_tidy() noexcept;

// Whether this thread was asked since it was last told so. What malloc keeps, which is everybody's, the first
// one that is told gives back here.
bool tidy_is_due() noexcept;

}  // namespace bireme
