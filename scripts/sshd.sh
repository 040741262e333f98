# Sourced: an ssh server of its own for a test, with keys made for it, and a client that knows it as `far`. Nothing of the user's is read or changed.

# Writes host_key, user_key, known_hosts, sshd_config and ssh_config into the current directory: ADDRESS [LINE OF sshd_config]..
write_ssh_files() {
    local address=$1
    shift
    ssh-keygen -q -t ed25519 -N '' -f host_key
    ssh-keygen -q -t ed25519 -N '' -f user_key
    mkdir -p /run/sshd
    printf '%s\n' "ListenAddress $address" "HostKey $PWD/host_key" "AuthorizedKeysFile $PWD/user_key.pub" 'StrictModes no' 'PidFile none' \
        'UsePAM no' 'PermitRootLogin yes' 'UseDNS no' "$@" >sshd_config
    echo "$address $(cat host_key.pub)" >known_hosts
    printf '%s\n' 'Host far' "HostName $address" "IdentityFile $PWD/user_key" 'IdentitiesOnly yes' "UserKnownHostsFile $PWD/known_hosts" \
        'GlobalKnownHostsFile /dev/null' 'BatchMode yes' 'ExitOnForwardFailure yes' 'Ciphers aes128-gcm@openssh.com' >ssh_config
}
