// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/http2_server.h"

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>

#include "tests/kit/loopback.h"

namespace kube::testing {
namespace {

// More than a client should use, so that its own limit shows.
constexpr std::uint32_t kMaxStreams = 1000;

int ChooseHttp2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                unsigned offered_size, void*) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  auto* chosen = const_cast<unsigned char**>(out);
  const int code = SSL_select_next_proto(chosen, size, kHttp2, sizeof kHttp2, offered, offered_size);
  return code == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::shared_ptr<SSL_CTX> Http2Tls(const CertifiedKey& key) {
  std::shared_ptr<SSL_CTX> tls = ServerTls(key);
  SSL_CTX_set_alpn_select_cb(tls.get(), ChooseHttp2, nullptr);
  return tls;
}

nghttp2_nv Header(const char* name, const char* value) {
  const auto bytes = [](const char* text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text));  // nghttp2 only reads.
  };
  return {bytes(name), bytes(value), std::strlen(name), std::strlen(value), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace

class Http2Server::Connection {
 public:
  Connection(int fd, int number, Http2Server& server)
      : fd_(fd), number_(number), server_(server), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] {
          Run();
        }) {}
  ~Connection() {
    shutdown(fd_, SHUT_RDWR);
    thread_.join();
    close(fd_);
    close(wake_);
  }

  void Stream(std::string_view bytes) {
    std::lock_guard lock(mutex_);
    to_stream_ += bytes;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
  }

 private:
  struct Exchange {
    TestRequest request;
    std::string body;  // What is left to send.
    bool is_endless = false;
  };
  enum class End { kNone, kOrderly, kReset };

  static Connection& From(void* self) { return *static_cast<Connection*>(self); }

  void Run() {
    const std::shared_ptr<SSL> ssl(SSL_new(server_.tls_.get()), SSL_free);
    SSL_set_fd(ssl.get(), fd_);
    if (SSL_accept(ssl.get()) == 1) {
      MakeSession();
      Serve(ssl.get());
      if (end_ == End::kOrderly) SSL_shutdown(ssl.get());
      nghttp2_session_del(session_);
    }
    if (end_ == End::kReset) {
      const linger at_once{1, 0};
      setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
      // Ends the connection as close() does with such a linger, but leaves the number to the destructor.
      const sockaddr nowhere{AF_UNSPEC, {}};
      connect(fd_, &nowhere, sizeof nowhere);
    }
    shutdown(fd_, SHUT_RDWR);
  }

  void MakeSession() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kMaxStreams}};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 1);
  }

  void Serve(SSL* ssl) {
    while (Flush(ssl) && end_ == End::kNone) {
      pollfd fds[] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
      const bool has_more = SSL_pending(ssl) > 0;
      if (poll(fds, 2, has_more ? 0 : -1) < 0) continue;
      if (fds[1].revents != 0) TakeWhatToStream();
      if (!has_more && fds[0].revents == 0) continue;
      std::uint8_t bytes[16384];
      const int got = SSL_read(ssl, bytes, sizeof bytes);
      if (got <= 0 || nghttp2_session_mem_recv(session_, bytes, static_cast<std::size_t>(got)) < 0) return;
    }
  }

  bool Flush(SSL* ssl) {
    for (;;) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size <= 0) return size == 0;
      if (SSL_write(ssl, bytes, static_cast<int>(size)) <= 0) return false;
    }
  }

  void TakeWhatToStream() {
    std::uint64_t wakes = 0;
    [[maybe_unused]] const auto got = read(wake_, &wakes, sizeof wakes);
    std::string bytes;
    {
      std::lock_guard lock(mutex_);
      bytes.swap(to_stream_);
    }
    for (auto& [stream, exchange] : exchanges_) {
      if (!exchange.is_endless) continue;
      exchange.body += bytes;
      nghttp2_session_resume_data(session_, stream);
    }
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                      const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) {
    TestRequest& request = From(self).exchanges_[frame->hd.stream_id].request;
    std::string key(reinterpret_cast<const char*>(name), name_size);
    std::string text(reinterpret_cast<const char*>(value), value_size);
    if (key == ":method") request.method = std::move(text);
    else if (key == ":path") request.target = std::move(text);
    else request.headers.emplace_back(std::move(key), std::move(text));
    return 0;
  }

  static int OnData(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data, std::size_t size,
                    void* self) {
    From(self).exchanges_[stream].request.body.append(reinterpret_cast<const char*>(data), size);
    return 0;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* self) {
    const bool is_request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (is_request && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) From(self).OnRequest(frame->hd.stream_id);
    return 0;
  }

  void OnRequest(std::int32_t stream) {
    Exchange& exchange = exchanges_[stream];
    switch (server_.handler_(exchange.request, number_)) {
      case Fate::kAnswer: return Answer(stream, exchange.request.target);
      case Fate::kStream: exchange.is_endless = true; return Answer(stream, "");
      case Fate::kNoAnswer: return;
      case Fate::kRefuse: return Reset(stream, NGHTTP2_REFUSED_STREAM);
      case Fate::kReset: return Reset(stream, NGHTTP2_INTERNAL_ERROR);
      case Fate::kResetAndClose: end_ = End::kOrderly; return Reset(stream, NGHTTP2_INTERNAL_ERROR);
      case Fate::kGoAwayBefore: return GoAway(std::max(stream - 2, 0));
      case Fate::kGoAwayAfter: end_ = End::kOrderly; return GoAway(stream);
      case Fate::kAnswerAndGoAway: Answer(stream, exchange.request.target); return GoAway(stream);
      case Fate::kClose: end_ = End::kOrderly; return;
      case Fate::kBreak: end_ = End::kReset; return;
    }
  }

  void Answer(std::int32_t stream, const std::string& body) {
    exchanges_[stream].body = body;
    const nghttp2_nv headers[] = {Header(":status", "200"), Header("content-type", "text/plain")};
    nghttp2_data_provider data{};
    data.read_callback = ReadBody;
    nghttp2_submit_response(session_, stream, headers, std::size(headers), &data);
  }
  void Reset(std::int32_t stream, std::uint32_t code) {
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, code);
  }
  void GoAway(std::int32_t last_stream) {
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last_stream, NGHTTP2_NO_ERROR, nullptr, 0);
  }

  static ssize_t ReadBody(nghttp2_session*, std::int32_t stream, std::uint8_t* to, std::size_t size,
                          std::uint32_t* flags, nghttp2_data_source*, void* self) {
    Exchange& exchange = From(self).exchanges_[stream];
    const std::size_t part = std::min(size, exchange.body.size());
    if (part == 0 && exchange.is_endless) return NGHTTP2_ERR_DEFERRED;
    std::memcpy(to, exchange.body.data(), part);
    exchange.body.erase(0, part);
    if (exchange.body.empty() && !exchange.is_endless) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(part);
  }

  const int fd_;
  const int number_;
  Http2Server& server_;
  const int wake_;
  std::mutex mutex_;  // Guards to_stream_.
  std::string to_stream_;
  // The connection's thread only.
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, Exchange> exchanges_;  // By stream.
  End end_ = End::kNone;
  std::thread thread_;  // Last: it uses the members above.
};

Http2Server::Http2Server(const CertifiedKey& key, Handler handler)
    : handler_(std::move(handler)), tls_(Http2Tls(key)), listener_(ListenOnLoopback(port_)) {
  // OpenSSL writes to sockets without MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  acceptor_ = std::thread([this] { Accept(); });
}

Http2Server::~Http2Server() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  open_.clear();
}

void Http2Server::Stream(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  for (const auto& connection : open_) connection->Stream(bytes);
}

void Http2Server::Accept() {
  for (;;) {
    const int fd = AcceptFrom(listener_);
    if (fd < 0) return;
    const int number = ++connections_;
    std::lock_guard lock(mutex_);
    open_.push_back(std::make_unique<Connection>(fd, number, *this));
  }
}

}  // namespace kube::testing
