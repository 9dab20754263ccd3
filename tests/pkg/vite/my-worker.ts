import 'tritloom/worker'
