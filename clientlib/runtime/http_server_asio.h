// SPDX-License-Identifier: Apache-2.0
// Asio and Beast, for the files of the server. They include no other header of these.
#pragma once

// Asio's fences order the threads of one io_context; ours has one thread, and what goes to the threads of handlers and
// back is ordered by the locks of their queues. ThreadSanitizer does not support fences, and g++ refuses to compile
// them with it.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK

// Beast 1.81 asserts that the last chunk of a body is not its only one (parse_chunk_header: n >= 5), which a client can
// disprove by sending "0\r\n" and then a byte. What follows is right nevertheless, so debug builds do as releases do.
#define BOOST_DISABLE_ASSERTS

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
