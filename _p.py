import time, cProfile, pstats, numpy as np, sys
from benchmarks.federated import *
keys = [SigningKey.new() for _ in range(SITES)]
terms = agreed(keys, LENGTH)
values = [np.arange(LENGTH, dtype=np.int64) % 1000 - p for p in range(SITES)]
f = one_site(terms, keys, values); f()
own=[f() for _ in range(12)]
print("one site min %.2f med %.2f ms"%(1e3*min(own),1e3*median(own)))
share = VARIANCE / terms.parties.honest
def best(g,n=15):
    ts=[]
    for _ in range(n):
        ts.append(cpu(g))
    return "%.2f/%.2f ms"%(1e3*min(ts),1e3*median(ts))
print("noise", best(lambda: skellam(variance=share,size=LENGTH)))
print("streams", best(lambda: [masks.keystream(bytes([n])*32, LENGTH, masks.lane(32)) for n in range(10)]))
print("round", best(lambda: round_in_process(terms, keys, values).result(),6))
# steps of one site
import collections
acc=collections.defaultdict(list)
for _ in range(8):
    t0=time.process_time(); sites=[SumSite.begin(terms,keys[0])]; acc['begin'].append(time.process_time()-t0)
    sites+= [SumSite.begin(terms,k) for k in keys[1:]]
    server=SumServer(terms=terms); sent=[s.sent[0] for s in sites]
    for step in range(1,5):
        t0=time.process_time()
        for m in sent: server=server.receive(m)
        server,told=server.close()
        acc['server%d'%step].append(time.process_time()-t0)
        moved=[]
        for place,site in enumerate(sites):
            t0=time.process_time(); moved.append(stepped(site,step,told,values[place]))
            if place==0: acc['step%d'%step].append(time.process_time()-t0)
        sites,sent=[a for a,_ in moved],[b for _,b in moved]
    t0=time.process_time()
    for m in sent: server=server.receive(m)
    server,_=server.close()
    acc['server5'].append(time.process_time()-t0)
    t0=time.process_time(); server.result(); acc['result'].append(time.process_time()-t0)
for k,v in acc.items(): print(k,"%.2f %.2f"%(1e3*min(v),1e3*median(v)))
if len(sys.argv)>1:
    pr=cProfile.Profile(); pr.enable()
    round_in_process(terms, keys, values).result()
    pr.disable(); pstats.Stats(pr).sort_stats("tottime").print_stats(28)
