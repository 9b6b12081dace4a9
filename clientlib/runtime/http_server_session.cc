// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_server_session.h"

#include <optional>
#include <utility>

#include "clientlib/runtime/http_server_asio.h"
#include "clientlib/runtime/http_server_request.h"

namespace kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;

constexpr std::size_t kReadStep = 4096;
constexpr std::size_t kMaxDrained = 64UL << 10;
constexpr std::chrono::seconds kRetryAfter(1);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

using Plain = beast::tcp_stream;
using Tls = beast::ssl_stream<beast::tcp_stream>;

// One connection. The pending operation owns the session; while a thread of the pool answers, its task does.
template <typename Stream>
class Session : public ClosableSession, public std::enable_shared_from_this<Session<Stream>> {
 public:
  template <typename... Context>
  Session(tcp::socket socket, HttpSessions& sessions, std::shared_ptr<ssl::context> tls, Context&... context)
      : tls_(std::move(tls)), stream_(std::move(socket), context...), sessions_(sessions) {
    Join(sessions_.waiting);
  }
  ~Session() override { Leave(); }

  // Its pending operation fails and then destroys it.
  void Close() override {
    Leave();
    lowest().close();
  }

  void Start() {
    if constexpr (std::is_same_v<Stream, Tls>) {
      lowest().expires_after(limits().time);
      stream_.async_handshake(ssl::stream_base::server, [self = Self()](beast::error_code error) {
        if (!error) return self->Read();
        // The peer is to read the alert that says why.
        if (error.category() == asio::error::get_ssl_category()) self->ShutDown(After::kDrain);
      });
    } else {
      Read();
    }
  }

 private:
  enum class After { kNextRequest, kClose, kDrain };

  std::shared_ptr<Session> Self() { return this->shared_from_this(); }
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }
  const HttpServerLimits& limits() const { return sessions_.limits; }

  void Join(std::list<ClosableSession*>& list) {
    Leave();
    list_ = &list;
    place_ = list.insert(list.end(), this);
  }
  void Leave() {
    if (list_ != nullptr) list_->erase(place_);
    list_ = nullptr;
  }
  bool IsOpen() const { return list_ != nullptr; }  // Not closed by us.

  void AwaitNext() {
    if (buffer_.size() > 0 || limits().idle_time == Duration::zero()) return Read();
    lowest().expires_after(limits().idle_time);
    stream_.async_read_some(buffer_.prepare(kReadStep), [self = Self()](beast::error_code error, std::size_t taken) {
      if (error) return;
      self->buffer_.commit(taken);
      self->Read();
    });
  }

  void Read() {
    parser_.emplace();
    StartParser(*parser_, limits());
    lowest().expires_after(limits().time);
    http::async_read_header(stream_, buffer_, *parser_,
                            [self = Self()](beast::error_code error, std::size_t) { self->AfterHeader(error); });
  }

  void AfterHeader(beast::error_code error) {
    if (error) return Fail(error, true);
    if (!IsOpen()) return;  // The header came while we closed.
    auto checked = CheckHeader(*parser_, sessions_.routes, limits());
    if (const auto* refused = std::get_if<RefusedRequest>(&checked)) return Refuse(refused->status, refused->allow);
    incoming_ = std::get<IncomingRequest>(std::move(checked));
    if (parser_->is_done()) return Handle();

    ServedBody::value_type& body = parser_->get().body();
    body.charge = &charge_;
    body.limit = BodyLimit(limits());
    parser_->body_limit(body.limit);  // So that a chunk is refused by its announced length.
    lowest().expires_after(limits().body_time);
    if (!incoming_.awaits_continue || buffer_.size() > 0) return ReadBody();
    asio::async_write(stream_, asio::buffer(kContinue), [self = Self()](beast::error_code failed, std::size_t) {
      if (!failed) self->ReadBody();
    });
  }

  void ReadBody() {
    buffer_.reserve(buffer_.max_size());  // Beast reads no more at once than there is room for.
    http::async_read(stream_, buffer_, *parser_, [self = Self()](beast::error_code error, std::size_t) {
      if (error) return self->Fail(error, false);
      self->incoming_.request.body = std::move(self->parser_->get().body().text);
      if (self->IsOpen()) self->Handle();
    });
  }

  void Handle() {
    parser_.reset();
    if (sessions_.pool == nullptr) {
      Join(sessions_.waiting);  // As the last one: it has had its request.
      return Reply(AnswerOf(*incoming_.handler, incoming_.request));
    }
    Join(sessions_.answered);
    asio::post(*sessions_.pool, [self = Self(), io = lowest().get_executor()]() mutable {
      HttpReply reply = AnswerOf(*self->incoming_.handler, self->incoming_.request);
      // Moved: the session must not end on this thread.
      asio::post(io, [owner = std::move(self), answer = std::move(reply)]() mutable {
        owner->Join(owner->sessions_.waiting);
        owner->Reply(std::move(answer));
      });
    });
  }

  void Reply(HttpReply reply) {
    incoming_.request = {};  // Its charge stays: the answer may be as large.
    Write(std::move(reply), {}, incoming_.is_head, incoming_.keeps_alive ? After::kNextRequest : After::kClose);
  }

  void Fail(beast::error_code error, bool is_header) {
    if (const std::optional<http::status> status = RefusalOf(error, is_header)) Refuse(*status, {});
  }

  // Answers and closes the connection: the request was not read to its end.
  void Refuse(http::status status, std::string_view allow) {
    parser_.reset();
    charge_.Release();
    HttpReply reply{.status = static_cast<int>(status)};
    reply.body.append(http::obsolete_reason(status)) += '\n';
    if (status == http::status::service_unavailable) reply.retry_after = kRetryAfter;
    Write(std::move(reply), allow, false, After::kDrain);
  }

  void Write(HttpReply reply, std::string_view allow, bool is_head, After after) {
    response_ = {};
    response_.version(11);
    response_.result(static_cast<unsigned>(reply.status));
    response_.set(http::field::content_type, reply.content_type);
    if (response_.result() == http::status::unauthorized) response_.set(http::field::www_authenticate, "Bearer");
    if (!allow.empty()) response_.set(http::field::allow, allow);
    if (reply.retry_after.count() > 0) {
      response_.set(http::field::retry_after, std::to_string(reply.retry_after.count()));
    }
    response_.keep_alive(after == After::kNextRequest);
    response_.content_length(reply.body.size());  // For HEAD too, whose body is not sent.
    if (!is_head) response_.body() = std::move(reply.body);
    lowest().expires_after(limits().write_time);
    http::async_write(stream_, response_, [self = Self(), after](beast::error_code error, auto) {
      self->response_ = {};
      self->charge_.Release();
      if (error) return;
      if (after == After::kNextRequest) return self->AwaitNext();
      self->EndSending(after);
    });
  }

  // Fails if the peer has closed.
  void EndSending(After after) {
    if constexpr (std::is_same_v<Stream, Tls>) {
      stream_.async_shutdown([self = Self(), after](beast::error_code) { self->ShutDown(after); });
    } else {
      ShutDown(after);
    }
  }

  void ShutDown(After after) {
    beast::error_code ignored;
    lowest().socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (after == After::kDrain) Drain(kMaxDrained);
  }

  // Reads what the peer still sends. Closing with unread bytes resets the connection, and the peer may lose our answer.
  void Drain(std::size_t left) {
    buffer_.clear();
    lowest().async_read_some(buffer_.prepare(kReadStep),
                             [self = Self(), left](beast::error_code error, std::size_t taken) {
                               if (!error && taken < left) self->Drain(left - taken);
                             });
  }

  const std::shared_ptr<ssl::context> tls_;  // Null: plain.
  Stream stream_;
  HttpSessions& sessions_;
  std::list<ClosableSession*>* list_ = nullptr;  // The list it is in; null once we have closed it.
  std::list<ClosableSession*>::iterator place_{};
  beast::flat_buffer buffer_{2 * limits().header_bytes + kReadStep};
  BodyCharge charge_{sessions_.bodies};
  std::optional<HttpRequestParser> parser_;
  IncomingRequest incoming_;  // While a thread of the pool answers it, that one's.
  http::response<http::string_body> response_;
};

}  // namespace

void StartSession(tcp::socket socket, HttpSessions& sessions, std::shared_ptr<ssl::context> tls) {
  beast::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);  // The end of a long answer must not wait for an acknowledgement.
  if (!tls) return std::make_shared<Session<Plain>>(std::move(socket), sessions, nullptr)->Start();
  ssl::context& context = *tls;
  std::make_shared<Session<Tls>>(std::move(socket), sessions, std::move(tls), context)->Start();
}

}  // namespace kube
