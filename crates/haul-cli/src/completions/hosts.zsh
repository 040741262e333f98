_NAME_known_hosts() {
    cat ~/.ssh/config ~/.ssh/config.d/*(N) 2>/dev/null | awk 'tolower($1) == "host" { for (i = 2; i <= NF; i++) if ($i !~ /[*?!]/) print $i }'
    cat ~/.ssh/known_hosts 2>/dev/null | awk '$1 !~ /^[|@#[]/ { split($1, names, ","); for (i in names) print names[i] }'
}

_NAME_hosts() {
    local -a hosts
    hosts=(${(f)"$(_NAME_known_hosts)"})
    compadd "$@" -a hosts
}

_NAME_operands() {
    local host place
    local -a names hosts
    if [[ $PREFIX == *://* ]]; then
        return 1
    elif [[ $PREFIX == *:* && ${PREFIX%%:*} != */* ]]; then
        host=${PREFIX%%:*}
        compset -P 1 '*:'
        place=${(q)${(Q)PREFIX}}
        names=(${(f)"$(ssh -o BatchMode=yes -o ConnectTimeout=3 -- $host "ls -1dp -- ${place/#\\~/~}* 2>/dev/null" </dev/null 2>/dev/null)"})
        compadd -S '' -- ${(M)names:#*/}
        compadd -- ${names:#*/}
    else
        hosts=(${(f)"$(_NAME_known_hosts)"})
        compadd -S : -- $hosts
        _files
    fi
}
