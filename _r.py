import time, cProfile, pstats, numpy as np
from benchmarks.federated import *
keys = [SigningKey.new() for _ in range(SITES)]
terms = agreed(keys, LENGTH)
print(terms.parties, terms.parties.threshold)
values = [np.arange(LENGTH, dtype=np.int64) % 1000 - p for p in range(SITES)]
pr=cProfile.Profile()
f = one_site(terms, keys, values); f()
for _ in range(10):
    server=SumServer(terms=terms)
    pr.enable(); first=SumSite.begin(terms,keys[0]); pr.disable()
    sites=[first,*(SumSite.begin(terms,k) for k in keys[1:])]; sent=[s.sent[0] for s in sites]
    for step in range(1,5):
        for m in sent: server=server.receive(m)
        server,told=server.close(); moved=[]
        for place,site in enumerate(sites):
            if place==0: pr.enable()
            moved.append(stepped(site,step,told,values[place]))
            if place==0: pr.disable()
        sites,sent=[a for a,_ in moved],[b for _,b in moved]
pstats.Stats(pr).sort_stats("tottime").print_stats(40)
