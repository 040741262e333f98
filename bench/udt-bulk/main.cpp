// Bulk transfer by UDT 4 (Debian's libudt), memory to memory: haul is measured beside it.
#include <netinet/in.h>
#include <udt/udt.h>

#include "../bulk.hpp"

namespace {

void check(int result, const char* what) {
    if (result == UDT::ERROR) bulk::fail(std::string(what) + ": " + UDT::getlasterror().getErrorMessage());
}

template <typename T>
void set(UDTSOCKET socket, UDT::SOCKOPT option, T value) {
    check(UDT::setsockopt(socket, 0, option, &value, sizeof value), "setsockopt");
}

UDTSOCKET open(const bulk::Plan& plan) {
    const UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    // The window in packets comes first: the receive buffer is limited to it.
    set(socket, UDT_FC, bulk::window_pkts(plan));
    set(socket, UDT_SNDBUF, bulk::as_int(plan.window_bytes));
    set(socket, UDT_RCVBUF, bulk::as_int(plan.window_bytes));
    set(socket, UDP_SNDBUF, bulk::kUdpBufferBytes);
    set(socket, UDP_RCVBUF, bulk::kUdpBufferBytes);
    return socket;
}

void receive(const bulk::Plan& plan) {
    const UDTSOCKET listener = open(plan);
    check(UDT::bind(listener, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "bind");
    check(UDT::listen(listener, 1), "listen");
    bulk::tell_listening();
    sockaddr_storage from{};
    int length = sizeof from;
    const UDTSOCKET connection = UDT::accept(listener, reinterpret_cast<sockaddr*>(&from), &length);
    if (connection == UDT::INVALID_SOCK) bulk::fail("accept");
    bulk::meter(plan, [connection](char* buffer, int length) -> int64_t { return UDT::recv(connection, buffer, length, 0); });
}

void send(const bulk::Plan& plan) {
    const UDTSOCKET socket = open(plan);
    check(UDT::connect(socket, reinterpret_cast<const sockaddr*>(&plan.address), sizeof plan.address), "connect");
    const bool all = bulk::pump(plan, [socket](const char* buffer, int length) { return UDT::send(socket, buffer, length, 0); });
    // Waits until what is in the buffer has arrived.
    if (all) UDT::close(socket);
}

}  // namespace

int main(int argc, char** argv) {
    const bulk::Plan plan = bulk::parse(argc, argv, "UDT 4, Debian's libudt");
    UDT::startup();
    plan.receives ? receive(plan) : send(plan);
    UDT::cleanup();
}
