// SPDX-License-Identifier: Apache-2.0
// The body of a request in memory, as Beast reads it, and what all bodies take together. Of the server's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "clientlib/runtime/http_server_asio.h"

namespace kube {

struct BodyBudget {
  std::size_t limit = 0;
  std::size_t used = 0;
};

// What one request takes of the budget; given back at its end.
class BodyCharge {
 public:
  explicit BodyCharge(BodyBudget& budget) : budget_(budget) {}
  ~BodyCharge() { Release(); }
  BodyCharge(const BodyCharge&) = delete;
  BodyCharge& operator=(const BodyCharge&) = delete;

  // Whether it may have `bytes` in all. REQUIRES: not less than it has.
  bool RaiseTo(std::size_t bytes) {
    if (bytes - held_ > budget_.limit - budget_.used) return false;
    budget_.used += bytes - held_;
    held_ = bytes;
    return true;
  }
  void Release() {
    budget_.used -= held_;
    held_ = 0;
  }

 private:
  BodyBudget& budget_;
  std::size_t held_ = 0;
};

// A Body in Beast's sense. Memory grows with what has come, not by what was announced. A body over its own limit fails
// with http::error::body_limit, one over the budget of all with errc::not_enough_memory.
struct ServedBody {
  struct value_type {
    BodyCharge* charge = nullptr;  // Null: no body is read.
    std::size_t limit = 0;
    std::string text{};
  };

  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(boost::beast::http::header<kIsRequest, Fields>&, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>& announced, boost::beast::error_code& error) {
      if (announced && *announced < expected_) expected_ = static_cast<std::size_t>(*announced);
      error = {};
    }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::beast::error_code& error) {
      const std::size_t bytes = boost::beast::buffer_bytes(buffers);
      error = Grow(bytes);
      if (error) return 0;
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        body_.text.append(static_cast<const char*>(buffer.data()), buffer.size());
      }
      return bytes;
    }

    void finish(boost::beast::error_code& error) { error = {}; }

   private:
    static constexpr std::size_t kFirst = 16UL << 10;

    boost::beast::error_code Grow(std::size_t bytes) {
      std::string& text = body_.text;
      if (body_.charge == nullptr || bytes > body_.limit - text.size()) {
        return make_error_code(boost::beast::http::error::body_limit);
      }
      const std::size_t needed = text.size() + bytes;
      if (needed <= reserved_) return {};
      const std::size_t most = std::max(needed, std::min(expected_, body_.limit));
      const std::size_t wanted = std::min(std::max({needed, 2 * reserved_, kFirst}), most);
      if (!body_.charge->RaiseTo(wanted)) return make_error_code(boost::system::errc::not_enough_memory);
      text.reserve(wanted);
      reserved_ = wanted;
      return {};
    }

    value_type& body_;
    std::size_t expected_ = std::numeric_limits<std::size_t>::max();
    std::size_t reserved_ = 0;
  };
};

}  // namespace kube
