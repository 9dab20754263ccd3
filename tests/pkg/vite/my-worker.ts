import 'ternlight/worker'
